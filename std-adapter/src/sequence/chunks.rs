//! The chunks that BIO, IOB1 or IOBES labels mean, by the rules of conlleval (Tjong Kim Sang 2000): a chunk ends before `B`, `S`, `O`, after `E`, `S`, and where the type
//! changes; a chunk begins at `B`, `S`, after an end, and where the type changes. Labels that are no valid sequence have chunks all the same.

/// A label, taken apart: `B-NP` is `('B', "NP")`, `O` is `('O', "")`. `None` if it is not of that form.
pub fn split(label: &str) -> Option<(char, &str)> {
    let mut letters = label.chars();
    let first = letters.next()?;
    let rest = letters.as_str();
    match first {
        'O' if rest.is_empty() => Some(('O', "")),
        'B' | 'I' | 'E' | 'S' | 'L' | 'U' if rest.is_empty() => Some((first, "")),
        'B' | 'I' | 'E' | 'S' | 'L' | 'U' => {
            rest.strip_prefix('-').or_else(|| rest.strip_prefix('_')).map(|kind| (first, kind))
        }
        _ => None,
    }
}

/// Whether labels are of this form, and mean chunks at all.
pub fn are_chunks<'a>(labels: impl IntoIterator<Item = &'a str>) -> bool {
    let (mut all, mut begins) = (true, false);
    for label in labels {
        match split(label) {
            Some((letter, kind)) if letter != 'O' && !kind.is_empty() => begins = true,
            Some(_) => {}
            None => all = false,
        }
    }
    all && begins
}

/// The chunks of a sequence of labels: first item, one past the last, type.
///
/// ```
/// use gibbsite::sequence::chunks::chunks;
/// assert_eq!(chunks(&["B-NP", "I-NP", "O", "I-VP", "B-VP"]), [(0, 2, "NP"), (3, 4, "VP"), (4, 5, "VP")]);
/// assert_eq!(chunks(&["S-A", "B-A", "E-A", "E-A"]), [(0, 1, "A"), (1, 3, "A"), (3, 4, "A")]);
/// ```
pub fn chunks<'a>(labels: &[&'a str]) -> Vec<(usize, usize, &'a str)> {
    let mut found = Vec::new();
    // Start and type of the chunk that is open.
    let mut open: Option<(usize, &str)> = None;
    for (t, label) in labels.iter().enumerate() {
        let (letter, kind) = split(label).unwrap_or(('O', ""));
        let (letter, kind) = if letter == 'O' { ('O', "") } else { (letter, kind) };
        let begins = matches!(letter, 'B' | 'S' | 'U');
        if let Some((start, was)) = open
            && (begins || letter == 'O' || kind != was)
        {
            found.push((start, t, was));
            open = None;
        }
        if letter != 'O' {
            let (start, _) = *open.get_or_insert((t, kind));
            if matches!(letter, 'E' | 'S' | 'L' | 'U') {
                found.push((start, t + 1, kind));
                open = None;
            }
        }
    }
    if let Some((start, kind)) = open {
        found.push((start, labels.len(), kind));
    }
    found
}
