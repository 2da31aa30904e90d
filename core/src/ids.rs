//! Transparent identifiers: a variable, a factor, a label. They are `u32` so that the same number
//! fits a device register, an image word and a file.

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(transparent)]
        pub struct $name(pub u32);

        impl $name {
            /// The identifier as a position in an array.
            #[inline(always)]
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl core::fmt::Display for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                core::fmt::Display::fmt(&self.0, f)
            }
        }

        impl From<u32> for $name {
            fn from(value: u32) -> Self {
                Self(value)
            }
        }
    };
}

id! {
    /// A variable of a factor graph, counted from 0.
    ///
    /// ```
    /// use gibbsite_core::ids::VarId;
    /// assert_eq!(VarId(3).index(), 3);
    /// ```
    VarId
}
id! {
    /// A factor of a factor graph, counted from 0.
    FactorId
}
id! {
    /// A value that a discrete variable can take, counted from 0.
    Label
}
