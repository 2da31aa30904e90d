//! The shape of the grid, apart from the other models because the build script plans it.

/// Arities.
pub const CARDS: [u32; 9] = [2, 3, 2, 2, 2, 3, 2, 2, 2];
/// Where each factor's scope begins: nine places, then twelve neighbours.
pub const SCOPE_START: [u32; 22] =
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31, 33];
/// The scopes.
pub const SCOPE: [u32; 33] = [
    0, 1, 2, 3, 4, 5, 6, 7, 8, // places
    0, 1, 1, 2, 3, 4, 4, 5, 6, 7, 7, 8, // along the rows
    0, 3, 3, 6, 1, 4, 4, 7, 2, 5, 5, 8, // along the columns
];
