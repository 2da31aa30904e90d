//! Tokens of UAI files: what separates them, what numbers they may be, and where they stand.

use super::error::{UaiError, UaiErrorKind, Wanted};

/// A token and its offset in the file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token<'a> {
    pub(super) at: usize,
    pub(super) bytes: &'a [u8],
}

/// The tokens of a file, one after the other. Only offsets are kept; lines are counted when an error
/// needs them.
#[derive(Clone, Debug)]
pub(super) struct Tokens<'a> {
    text: &'a [u8],
    at: usize,
}

const BOM: [u8; 3] = [0xef, 0xbb, 0xbf];

/// Space, tab, line feed, vertical tab, form feed, carriage return.
#[inline(always)]
fn is_space(b: u8) -> bool {
    matches!(b, b' ' | b'\t'..=b'\r')
}

fn is_line_end(b: u8) -> bool {
    matches!(b, b'\n' | b'\r')
}

/// Length of the token at the beginning of `rest`; 0 at white space and at a comment.
#[inline(always)]
fn token_len(rest: &[u8]) -> usize {
    let mut from = 0;
    while let Some(len) =
        rest.get(from..).and_then(|r| r.iter().position(|&b| is_space(b) || b == b'#' || b == b'/'))
    {
        let end = from + len;
        // A lone slash is no comment: it stays in the token, for the message.
        if rest.get(end) != Some(&b'/') || rest.get(end + 1) == Some(&b'/') {
            return end;
        }
        from = end + 1;
    }
    rest.len()
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    #[inline]
    fn next(&mut self) -> Option<Token<'a>> {
        loop {
            let rest = self.text.get(self.at..)?;
            let spaces = rest.iter().position(|&b| !is_space(b)).unwrap_or(rest.len());
            self.at += spaces;
            let rest = rest.get(spaces..)?;
            if rest.is_empty() {
                return None;
            }
            let len = token_len(rest);
            if len > 0 {
                let token = Token { at: self.at, bytes: rest.get(..len)? };
                self.at += len;
                return Some(token);
            }
            self.at += rest.iter().position(|&b| is_line_end(b)).unwrap_or(rest.len());
        }
    }
}

impl<'a> Tokens<'a> {
    pub(super) fn new(text: &'a [u8]) -> Self {
        Self { text: text.strip_prefix(&BOM).unwrap_or(text), at: 0 }
    }

    /// How many tokens can follow at most: what may be reserved on the word of a count in the file.
    pub(super) fn room(&self) -> usize {
        self.text.len().saturating_sub(self.at).div_ceil(2)
    }

    /// An error at a token.
    #[cold]
    pub(super) fn fault(&self, token: Token<'_>, kind: UaiErrorKind) -> UaiError {
        let (line, line_start) = self.line_of(token.at);
        let before = self.text.get(line_start..token.at).unwrap_or(&[]);
        // Bytes that continue a UTF-8 character do not count.
        let column = 1 + before.iter().filter(|&&b| b & 0xc0 != 0x80).count();
        // A line never begins inside a comment or a token.
        let tokens = Self { text: self.text, at: line_start };
        let number = tokens.take_while(|t| t.at <= token.at).count();
        UaiError { line, column, token: Some(number), kind }
    }

    /// An error at the end of the file.
    #[cold]
    pub(super) fn end(&self, wanted: Wanted) -> UaiError {
        let len = self.text.iter().rposition(|&b| !is_space(b)).map_or(0, |last| last + 1);
        let (line, line_start) = self.line_of(len);
        let before = self.text.get(line_start..len).unwrap_or(&[]);
        let column = 1 + before.iter().filter(|&&b| b & 0xc0 != 0x80).count();
        let empty = Self { text: self.text, at: 0 }.next().is_none();
        let kind = if empty { UaiErrorKind::Empty(wanted) } else { UaiErrorKind::Truncated(wanted) };
        UaiError { line, column, token: None, kind }
    }

    /// The line of an offset, counted from 1, and where it begins. Lines end with `\n`, `\r\n` or `\r`.
    fn line_of(&self, offset: usize) -> (usize, usize) {
        let (mut line, mut start, mut after_return) = (1, 0, false);
        for (i, &b) in self.text.iter().take(offset).enumerate() {
            if is_line_end(b) {
                if !(b == b'\n' && after_return) {
                    line += 1;
                }
                start = i + 1;
            }
            after_return = b == b'\r';
        }
        (line, start)
    }

    /// The next token, which must be there.
    #[inline(always)]
    pub(super) fn need(&mut self, wanted: Wanted) -> Result<Token<'a>, UaiError> {
        match self.next() {
            Some(token) => Ok(token),
            None => Err(self.end(wanted)),
        }
    }

    /// The next token as a whole number in `0..=most`.
    #[inline]
    pub(super) fn whole(&mut self, wanted: Wanted, most: u64) -> Result<(Token<'a>, u64), UaiError> {
        let token = self.need(wanted)?;
        let found = || token.text();
        match token.integer() {
            Some(n) if n < 0 => Err(self.fault(token, UaiErrorKind::Whole { wanted, found: found() })),
            Some(n) if n.unsigned_abs() > most => {
                Err(self.fault(token, UaiErrorKind::TooMany { wanted, found: found(), most }))
            }
            Some(n) => Ok((token, n.unsigned_abs())),
            None => Err(self.fault(token, UaiErrorKind::Whole { wanted, found: found() })),
        }
    }

    /// The next token as a finite number of at least 0.
    #[inline]
    pub(super) fn weight(&mut self, wanted: Wanted) -> Result<f64, UaiError> {
        if let Some(x) = self.plain_decimal() {
            return Ok(x);
        }
        let token = self.need(wanted)?;
        match token.number() {
            Some(x) if x >= 0.0 && x.is_finite() => Ok(x),
            _ => Err(self.fault(token, UaiErrorKind::Number { wanted, found: token.text() })),
        }
    }

    /// The next token if it is a decimal such as `7`, `0.125` or `1e-05` that one exact operation gives
    /// (Clinger 1990): a mantissa below 2^53 times or over a power of ten that is an `f64`. The result is
    /// then the one that `str::parse` would give, in one pass over the bytes. `None` for anything else,
    /// with nothing consumed.
    #[inline]
    fn plain_decimal(&mut self) -> Option<f64> {
        let rest = self.text.get(self.at..)?;
        let mut bytes = rest.get(rest.iter().position(|&b| !is_space(b))?..)?.iter();
        let (mut mantissa, mut digits, mut decimals, mut in_decimals) = (0u64, 0u32, 0i32, 0i32);
        let mut exponent = 0i32;
        loop {
            match bytes.next() {
                Some(&b) if b.is_ascii_digit() => {
                    mantissa = mantissa.wrapping_mul(10).wrapping_add(u64::from(b - b'0'));
                    digits += 1;
                    decimals += in_decimals;
                }
                Some(b'.') if in_decimals == 0 => in_decimals = 1,
                Some(b'e' | b'E') => {
                    exponent = short_exponent(&mut bytes)?;
                    break;
                }
                Some(&b) if is_space(b) => break,
                None => break,
                Some(_) => return None,
            }
            // More digits could wrap around; 18 cannot.
            if digits > 18 {
                return None;
            }
        }
        let power = exponent - decimals;
        let scale = *POWERS.get(power.unsigned_abs() as usize)?;
        if digits == 0 || mantissa > 1 << 53 {
            return None;
        }
        self.at = self.text.len() - bytes.as_slice().len();
        Some(if power < 0 { mantissa as f64 / scale } else { mantissa as f64 * scale })
    }

    /// `Ok` if no token is left.
    pub(super) fn finish(&mut self, after: &'static str) -> Result<(), UaiError> {
        match self.next() {
            Some(token) => Err(self.fault(token, UaiErrorKind::Trailing { found: token.text(), after })),
            None => Ok(()),
        }
    }
}

/// The powers of ten that an `f64` holds exactly.
const POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18,
    1e19, 1e20, 1e21, 1e22,
];

/// A signed exponent of at most three digits, with the white space after it.
#[inline]
fn short_exponent(bytes: &mut std::slice::Iter<'_, u8>) -> Option<i32> {
    let sign = match bytes.as_slice().first()? {
        b'-' => -1,
        _ => 1,
    };
    if matches!(bytes.as_slice().first()?, b'-' | b'+') {
        bytes.next();
    }
    let (mut size, mut digits) = (0, 0);
    loop {
        match bytes.next() {
            Some(&b) if b.is_ascii_digit() && digits < 3 => size = size * 10 + i32::from(b - b'0'),
            Some(&b) if !is_space(b) => return None,
            _ => return (digits > 0).then_some(sign * size),
        }
        digits += 1;
    }
}

impl Token<'_> {
    /// The token for a message: printable and not too long.
    #[cold]
    pub(super) fn text(&self) -> String {
        const MOST: usize = 40;
        let head = self.bytes.get(..MOST).unwrap_or(self.bytes);
        let mut text = String::new();
        for c in String::from_utf8_lossy(head).chars() {
            match c {
                '"' | '\'' => text.push(c),
                _ => text.extend(c.escape_debug()),
            }
        }
        if head.len() < self.bytes.len() {
            text.push('…');
        }
        text
    }

    /// A decimal integer with an optional sign; beyond 64 bits it sticks to the largest or smallest.
    #[inline]
    pub(super) fn integer(&self) -> Option<i64> {
        let (negative, digits) = match self.bytes {
            [b'-', digits @ ..] => (true, digits),
            [b'+', digits @ ..] => (false, digits),
            digits => (false, digits),
        };
        if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
            return None;
        }
        let size = digits.iter().fold(0i64, |n, b| n.saturating_mul(10).saturating_add(i64::from(b - b'0')));
        Some(if negative { -size } else { size })
    }

    /// Any number that Rust reads as an `f64`: also `1.E+3`, `.5`, `inf` and `nan`.
    #[inline]
    pub(super) fn number(&self) -> Option<f64> {
        std::str::from_utf8(self.bytes).ok()?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> Vec<&str> {
        Tokens::new(text.as_bytes()).map(|t| std::str::from_utf8(t.bytes).unwrap()).collect()
    }

    #[test]
    fn white_space_and_comments_separate() {
        assert_eq!(split("\u{feff} a\tb\r\nc\x0bd\x0ce"), ["a", "b", "c", "d", "e"]);
        assert_eq!(split("a#b c\nd // e\r f//\n#\n//x"), ["a", "d", "f"]);
        assert_eq!(split("1/2 / /"), ["1/2", "/", "/"]);
        assert_eq!(split("1/2//3\n/"), ["1/2", "/"]);
        assert_eq!(split(" # nothing"), [""; 0]);
    }

    #[test]
    fn places_count_lines_of_all_systems() {
        for text in ["a\nb c\n# d\n é x", "a\r\nb c\r\n# d\r\n é x", "a\rb c\r# d\r é x"] {
            let tokens = Tokens::new(text.as_bytes());
            let token = tokens.clone().last().unwrap();
            let error = tokens.fault(token, UaiErrorKind::Samples(2));
            assert_eq!((error.line, error.column, error.token), (4, 4, Some(2)), "{text:?}");
        }
    }

    #[test]
    fn integers_are_only_that() {
        let integer = |text: &str| Token { at: 0, bytes: text.as_bytes() }.integer();
        assert_eq!(integer("+007"), Some(7));
        assert_eq!(integer("-1"), Some(-1));
        assert_eq!(integer("99999999999999999999999"), Some(i64::MAX));
        for text in ["2.0", "1e3", "", "+", "-", "--1", "0x1", "1_000", "٣"] {
            assert_eq!(integer(text), None, "{text}");
        }
    }
}
