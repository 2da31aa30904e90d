//! Penalty factors from a file.

use gibbsite::data::dataset::Names;
use gibbsite::data::source::Source;
use std::collections::{HashMap, HashSet};
use std::path::Path;

/// Reads a factor for each column: a number a line in the columns' order, or lines `feature,factor`, the others 1. And what to say about it.
pub(super) fn read(path: &Path, names: &Names) -> anyhow::Result<(Vec<f64>, Option<String>)> {
    let source = Source::open(path)?;
    parse(&source.bytes, names).map_err(|what| anyhow::anyhow!("{}: {what}", source.name))
}

fn parse(bytes: &[u8], names: &Names) -> Result<(Vec<f64>, Option<String>), String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "found binary data, expected text".to_owned())?;
    let mut lines =
        text.lines().enumerate().map(|(k, line)| (k + 1, line.trim())).filter(|l| !l.1.is_empty()).peekable();
    let factor = |number: usize, word: &str| match word.trim().parse::<f64>() {
        Ok(w) if w >= 0.0 && w.is_finite() => Ok(w),
        _ => Err(format!(
            "line {number}: found `{}`, expected a finite number of at least 0",
            short(word.trim())
        )),
    };
    if !lines.peek().is_some_and(|l| l.1.contains(',')) {
        let weights = lines.map(|(k, line)| factor(k, line)).collect::<Result<Vec<_>, _>>()?;
        if weights.len() != names.len() {
            let (found, expected) = (weights.len(), names.len());
            return Err(format!("found {found} numbers, expected one for each of {expected} features"));
        }
        return Ok((weights, None));
    }
    let columns: Option<HashMap<&str, usize>> = match names {
        Names::Columns(all) => Some(all.iter().enumerate().map(|(j, name)| (name.as_str(), j)).collect()),
        _ => None,
    };
    let mut weights = vec![1.0; names.len()];
    let (mut seen, mut unknown) = (HashSet::new(), 0usize);
    for (number, line) in lines {
        let (name, word) = line
            .rsplit_once(',')
            .ok_or_else(|| format!("line {number}: found `{}`, expected `feature,factor`", short(line)))?;
        let name = name.trim();
        let name = name.strip_prefix('"').and_then(|n| n.strip_suffix('"')).unwrap_or(name);
        let weight = factor(number, word)?;
        if !seen.insert(name) {
            return Err(format!(
                "line {number}: found the feature `{}` twice, expected it once",
                short(name)
            ));
        }
        let place = match &columns {
            Some(columns) => columns.get(name).copied(),
            // Numbers that the data does not use are as good as not there; anything else is a mistake.
            None if name.parse::<u32>().is_err() => {
                return Err(format!(
                    "line {number}: found `{}`, expected the number of a feature",
                    short(name)
                ));
            }
            None => names.position(name),
        };
        match place.and_then(|j| weights.get_mut(j)) {
            Some(w) => *w = weight,
            None if columns.is_some() => {
                return Err(format!("line {number}: the data has no feature `{}`", short(name)));
            }
            None => unknown += 1,
        }
    }
    let note = (unknown > 0)
        .then(|| format!("factors of {unknown} features that the data does not have are ignored"));
    Ok((weights, note))
}

/// The beginning of a word that may be long.
fn short(word: &str) -> String {
    let mut text: String = word.chars().take(40).collect();
    if text.len() < word.len() {
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms() {
        let numbered = Names::Counted { first: 1, len: 3 };
        assert_eq!(parse(b"1\n0\n\n2.5\n", &numbered), Ok((vec![1.0, 0.0, 2.5], None)));
        assert_eq!(parse(b"2,0.5\r\n", &numbered), Ok((vec![1.0, 0.5, 1.0], None)));
        let note = Some("factors of 1 features that the data does not have are ignored".to_owned());
        assert_eq!(parse(b"9,0.5\n", &numbered), Ok((vec![1.0; 3], note)));
        let named = Names::Columns(vec!["a,b".into(), "c".into()]);
        assert_eq!(parse(b"\"a,b\",0\nc, 7\n", &named), Ok((vec![0.0, 7.0], None)));
    }

    #[test]
    fn mistakes_are_named() {
        let numbered = Names::Counted { first: 1, len: 2 };
        let named = Names::Columns(vec!["a".into(), "b".into()]);
        for (text, names, message) in [
            ("1\n", &numbered, "found 1 numbers, expected one for each of 2 features"),
            ("", &numbered, "found 0 numbers, expected one for each of 2 features"),
            ("1\n-1\n", &numbered, "line 2: found `-1`, expected a finite number of at least 0"),
            ("1\nnan\n", &numbered, "line 2: found `nan`, expected a finite number of at least 0"),
            ("1,2\n3\n", &numbered, "line 2: found `3`, expected `feature,factor`"),
            ("1,2\n1,3\n", &numbered, "line 2: found the feature `1` twice, expected it once"),
            ("x,2\n", &numbered, "line 1: found `x`, expected the number of a feature"),
            ("c,2\n", &named, "line 1: the data has no feature `c`"),
        ] {
            assert_eq!(parse(text.as_bytes(), names), Err(message.to_owned()), "{text}");
        }
    }
}
