//! Decimal numbers out of text, fast and exact.

/// A decimal number at the start of `text`, such as `7`, `-.5` or `+1e-05`, and its length. `None` if there is none; words
/// such as `nan` or `inf` are none. Beyond the range of an `f64` it is infinite.
///
/// Up to 19 digits that make a mantissa `m ≤ 2⁵³`, with a power of ten up to 22, are read by one exact operation (Clinger
/// 1990): `m` and `10^k` are `f64`s, so `m · 10^k` and `m / 10^k` are rounded once. Digits after the point are taken
/// eight at a time. Everything else goes to `str::parse`, so that the result is always the nearest `f64`.
#[inline(always)]
pub(crate) fn decimal(text: &[u8]) -> Option<(f64, usize)> {
    let (negative, unsigned) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    let (mut mantissa, mut rest) = digits(0, unsigned);
    let mut count = unsigned.len() - rest.len();
    let mut power = 0;
    if let [b'.', decimals @ ..] = rest {
        rest = decimals;
        while let Some((eight, after)) = rest.split_first_chunk::<8>()
            && let Some(number) = eight_digits(u64::from_le_bytes(*eight))
        {
            mantissa = mantissa.wrapping_mul(100_000_000).wrapping_add(number);
            rest = after;
        }
        (mantissa, rest) = digits(mantissa, rest);
        let len = decimals.len() - rest.len();
        count += len;
        power = -(len.min(1 << 20) as i32);
    }
    if count == 0 {
        return None;
    }
    if matches!(rest, [b'e' | b'E', ..]) {
        let (exponent, after) = exponent(rest)?;
        power = exponent.saturating_add(power);
        rest = after;
    }
    let len = text.len() - rest.len();
    // 19 digits cannot have wrapped around.
    let value = match POWERS.get(power.unsigned_abs() as usize) {
        Some(scale) if count <= 19 && mantissa <= 1 << 53 => {
            let size = mantissa as f64;
            let size = if power < 0 { size / scale } else { size * scale };
            if negative { -size } else { size }
        }
        _ => hard(&text[..len])?,
    };
    Some((value, len))
}

/// The exponent at the start of `text`, and what follows it.
#[cold]
fn exponent(text: &[u8]) -> Option<(i32, &[u8])> {
    let (minus, rest) = match text {
        [_, b'-', rest @ ..] => (true, rest),
        [_, b'+', rest @ ..] | [_, rest @ ..] => (false, rest),
        [] => return None,
    };
    let end = rest.iter().position(|b| !b.is_ascii_digit()).unwrap_or(rest.len());
    let (digits, rest) = rest.split_at(end);
    let size = digits.iter().fold(0i32, |n, b| n.saturating_mul(10).saturating_add(i32::from(b - b'0')));
    (end > 0).then_some((if minus { -size } else { size }, rest))
}

/// A number that one operation does not give.
#[cold]
fn hard(text: &[u8]) -> Option<f64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Appends the decimal digits at the start of `text` to `number`, which may wrap around.
#[inline(always)]
fn digits(mut number: u64, mut text: &[u8]) -> (u64, &[u8]) {
    while let [digit @ b'0'..=b'9', rest @ ..] = text {
        number = number.wrapping_mul(10).wrapping_add(u64::from(digit - b'0'));
        text = rest;
    }
    (number, text)
}

/// The number that eight digits stand for, the first one in the lowest byte: pairs, then fours, then all of them are joined
/// by one multiplication each. `None` unless all are digits.
#[inline(always)]
fn eight_digits(word: u64) -> Option<u64> {
    const ZEROS: u64 = 0x3030_3030_3030_3030;
    const HIGH: u64 = 0xf0f0_f0f0_f0f0_f0f0;
    if word & HIGH != ZEROS || word.wrapping_add(0x0606_0606_0606_0606) & HIGH != ZEROS {
        return None;
    }
    let ones = word - ZEROS;
    let twos = (ones.wrapping_mul(10).wrapping_add(ones >> 8)) & 0x00ff_00ff_00ff_00ff;
    let fours = (twos.wrapping_mul(100).wrapping_add(twos >> 16)) & 0x0000_ffff_0000_ffff;
    Some((fours.wrapping_mul(10_000).wrapping_add(fours >> 32)) & 0xffff_ffff)
}

/// The powers of ten that an `f64` holds exactly.
const POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18,
    1e19, 1e20, 1e21, 1e22,
];

/// A piece of the file for a message: printable and not too long.
#[cold]
pub(crate) fn shown(token: &[u8]) -> String {
    const MOST: usize = 40;
    let head = token.get(..MOST).unwrap_or(token);
    let mut text = String::new();
    for c in String::from_utf8_lossy(head).chars() {
        match c {
            '"' | '\'' => text.push(c),
            _ => text.extend(c.escape_debug()),
        }
    }
    if head.len() < token.len() {
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};

    #[test]
    fn as_the_standard_library_reads_them() {
        let mut rng = rand_xoshiro::Xoshiro256PlusPlus::seed_from_u64(7);
        let mut texts: Vec<String> = [
            "0",
            "-0",
            "+7",
            "1.",
            ".5",
            "-.5e1",
            "9007199254740993",
            "9007199254740992",
            "1e22",
            "1e23",
            "1e-22",
            "12345678.12345678",
            "0.1234567",
            "18446744073709551616",
            "99999999999999999999",
            "1e400",
            "1e-400",
            "0.00000000000000000000000000001",
            "123456789012345678901234567890e-20",
            "5e-324",
            "1e99999999999",
            "2.2250738585072011e-308",
            "0e99999999999",
            "1.7976931348623157e308",
        ]
        .map(String::from)
        .to_vec();
        for _ in 0..200_000 {
            let x = f64::from_bits(rng.random());
            if x.is_finite() {
                texts.extend([format!("{x:e}"), format!("{:.*}", rng.random_range(0..20), x % 1e6)]);
            }
            texts.push(rng.random::<f64>().to_string());
        }
        for text in texts {
            let expected: f64 = text.parse().unwrap();
            let (value, len) = decimal(format!("{text} 9").as_bytes()).unwrap();
            assert_eq!((value.to_bits(), len), (expected.to_bits(), text.len()), "{text}");
            assert_eq!(decimal(text.as_bytes()).unwrap().0.to_bits(), expected.to_bits(), "{text}");
        }
    }

    #[test]
    fn not_numbers() {
        for text in ["", "-", "+", ".", "e5", "nan", "inf", "-inf", "1e", "1e+", "--1", "+-1", "/5", ":5"] {
            assert_eq!(decimal(text.as_bytes()), None, "{text}");
        }
        assert_eq!(decimal(b"1.5:7"), Some((1.5, 3)));
        assert_eq!(decimal(b"0x10"), Some((0.0, 1)));
    }
}
