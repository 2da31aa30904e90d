//! Readers of sequences against naive ones that split strings and use hash maps: CRFsuite files, columns with templates, on any
//! number of threads and with cuts anywhere; and every kind of bad input gets its message.

use gibbsite::data::dataset::ReadError;
use gibbsite::data::sequences::{
    Alphabet, Corpus, Dictionary, DictionaryError, Format, Gold, ReadParams, Sequences, Template, read,
    read_from, read_known, read_known_from,
};
use gibbsite::par::Par;
use gibbsite_tests::packed::zstd;
use proptest::prelude::*;
use std::collections::HashMap;
use std::fmt::Write;

/// Label as it is shown below, attributes with values, attributes of the edge.
type Item = (String, Vec<(String, f64)>, Vec<String>);

/// Sequences with names instead of numbers: labels are `=A`, `?`, `!` (unknown) or `{A|B` in the order of their names.
fn named(sequences: &Sequences, alphabet: &Alphabet) -> Vec<Vec<Item>> {
    let label = |gold: Gold| match (gold, gold.known(), sequences.set(gold)) {
        (Gold::ANY, ..) => "?".to_owned(),
        (Gold::UNKNOWN, ..) => "!".to_owned(),
        (_, Some(id), None) => format!("={}", alphabet.labels.name(id).unwrap()),
        (_, None, Some(set)) => {
            assert!(set.len() > 1 && set.is_sorted());
            let mut names: Vec<_> = set.iter().map(|&id| alphabet.labels.name(id).unwrap()).collect();
            names.sort_unstable();
            format!("{{{}", names.join("|"))
        }
        _ => panic!("{gold:?}"),
    };
    let all: Vec<Vec<Item>> = sequences
        .iter()
        .map(|sequence| {
            assert!(sequence.items() > 0);
            (0..sequence.items())
                .map(|t| {
                    let name = |id| alphabet.attributes.name(id).unwrap().to_owned();
                    let attributes =
                        sequence.attributes(t).iter().map(|(id, value)| (name(id), value)).collect();
                    let edge = |&id: &u32| alphabet.edge_attributes.name(id).unwrap().to_owned();
                    let edges = sequence.edge_attributes(t).iter().map(edge).collect();
                    (label(sequence.gold(t)), attributes, edges)
                })
                .collect()
        })
        .collect();
    assert_eq!(sequences.items(), all.iter().map(Vec::len).sum::<usize>());
    all
}

/// Numbers follow the first occurrence, and each name has one.
fn in_order(found: &Dictionary, expected: impl Iterator<Item = String>) {
    let mut numbers = HashMap::new();
    for name in expected {
        let next = numbers.len();
        numbers.entry(name).or_insert(next);
    }
    assert_eq!(found.len(), numbers.len());
    for (name, id) in numbers {
        assert_eq!(found.name(id as u32), Some(name.as_str()));
        assert_eq!(found.get(&name), Some(id as u32));
    }
}

/// A label field by the book.
fn naive_label(text: &str) -> Option<String> {
    if text == "?" {
        return Some("?".into());
    }
    if text.len() < 2 || !text.starts_with('{') || !text.ends_with('}') {
        return Some(format!("={text}"));
    }
    let mut names: Vec<&str> = text[1..text.len() - 1].split('|').collect();
    names.sort_unstable();
    names.dedup();
    match names[..] {
        _ if names.contains(&"") => None,
        [one] => Some(format!("={one}")),
        _ => Some(format!("{{{}", names.join("|"))),
    }
}

/// Lines of a file without their ends; `None` is a blank one.
fn lines(text: &str) -> Vec<Option<&str>> {
    let text = text.strip_suffix('\n').unwrap_or(text);
    text.split('\n')
        .map(|line| line.strip_suffix('\r').unwrap_or(line))
        .map(|line| Some(line).filter(|line| line.chars().any(|c| !" \t\r".contains(c))))
        .collect()
}

fn unescape(text: &str) -> String {
    text.replace("\\\\", "\u{1}").replace("\\:", ":").replace('\u{1}', "\\")
}

/// A CRFsuite file by the book, or the line of its first fault.
fn naive_crfsuite(text: &str) -> Result<Vec<Vec<Item>>, usize> {
    let mut sequences = vec![vec![]];
    for (at, line) in lines(text).into_iter().enumerate() {
        let Some(line) = line else {
            sequences.push(vec![]);
            continue;
        };
        let mut fields = line.split('\t');
        let label = unescape(fields.next().unwrap());
        if label.is_empty() {
            return Err(at + 1);
        }
        let label = naive_label(&label).ok_or(at + 1)?;
        let mut attributes = vec![];
        for field in fields.filter(|field| !field.is_empty()) {
            // Escaped characters out of sight.
            let hidden = field.replace("\\\\", "\u{1}").replace("\\:", "\u{2}");
            let shown = |text: &str| text.replace('\u{1}', "\\").replace('\u{2}', ":");
            let (name, value) = match hidden.rsplit_once(':') {
                None => (shown(&hidden), 1.0),
                Some((name, "")) => (shown(name), 1.0),
                Some((name, value)) => {
                    let number = value.parse::<f64>().ok().filter(|v| v.is_finite()).ok_or(at + 1)?;
                    (shown(name), number)
                }
            };
            if name.is_empty() {
                return Err(at + 1);
            }
            attributes.push((name, value));
        }
        sequences.last_mut().unwrap().push((label, attributes, vec![]));
    }
    sequences.retain(|sequence| !sequence.is_empty());
    Ok(sequences)
}

/// The same result for chunks and threads of any kind, packed or not.
fn everywhere(text: &[u8], params: &ReadParams) -> Result<Corpus, String> {
    let whole = read_from(text, params).map_err(|error| error.to_string());
    for (chunk, threads) in [(1, 1), (1, 2), (3, 3), (17, 2), (40, 3), (1 << 20, 2)] {
        let params = ReadParams { chunk, par: Par::threads(threads), ..params.clone() };
        let cut = read_from(text, &params).map_err(|error| error.to_string());
        assert_eq!(cut, whole, "chunks of {chunk}, {threads} threads");
    }
    whole
}

fn crfsuite() -> ReadParams {
    ReadParams::new(Format::Crfsuite)
}

fn check(corpus: &Corpus, expected: &[Vec<Item>]) {
    assert_eq!(named(&corpus.sequences, &corpus.alphabet), expected);
    let items = || expected.iter().flatten();
    in_order(&corpus.alphabet.attributes, items().flat_map(|item| item.1.iter().map(|a| a.0.clone())));
    in_order(&corpus.alphabet.edge_attributes, items().flat_map(|item| item.2.clone()));
    assert_eq!(corpus.sequences.occurrences(), items().map(|item| item.1.len()).sum::<usize>());
    assert_eq!(corpus.sequences.edge_occurrences(), items().map(|item| item.2.len()).sum::<usize>());
    let weighted = items().any(|item| item.1.iter().any(|a| a.1 != 1.0));
    assert_eq!(corpus.sequences.weighted(), weighted);
}

/// A field of a CRFsuite file, nearly always legal.
fn field() -> impl Strategy<Value = String> {
    let value = prop_oneof![
        6 => Just(""), 1 => Just(":"), 1 => Just(":1"), 1 => Just(":-2.5"), 1 => Just(":1e-3"), 1 => Just(":0"), 1 => Just(":x:+7.25")
    ];
    let good = (r"[ab=|é\[\] ?{}]{1,2}(\\\\|\\:)?[a\\]?", value).prop_map(|(name, value)| name + value);
    let bad = prop_oneof![Just("a:x".to_owned()), Just(":".to_owned()), Just("a:nan".to_owned())];
    prop_oneof![300 => good, 1 => bad]
}

/// A CRFsuite file, mostly legal.
fn file() -> impl Strategy<Value = String> {
    let label = prop_oneof![6 => "[ABC]", 1 => Just("?".to_owned()), 1 => r"\{[ABC](\|[ABCD]){0,2}\}", 1 => r"B(:|\\:|\\\\)é?"];
    let end = prop_oneof![6 => Just("\n"), 1 => Just("\r\n"), 2 => Just("\n\n"), 1 => Just("\r\n \t\r\n\n")];
    let item = (label, prop::collection::vec(prop_oneof![9 => field(), 1 => Just(String::new())], 0..6), end);
    prop::collection::vec(item, 1..25).prop_map(|items| {
        let line = |(label, fields, end): (String, Vec<String>, &str)| {
            let fields: String = fields.iter().map(|field| format!("\t{field}")).collect();
            format!("{label}{fields}{end}")
        };
        items.into_iter().map(line).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn crfsuite_files(text in file(), cut in any::<bool>()) {
        let text = if cut { text.trim_end() } else { &text };
        match (everywhere(text.as_bytes(), &crfsuite()), naive_crfsuite(text)) {
            (Ok(corpus), Ok(expected)) => {
                check(&corpus, &expected);
                let (again, report) = read_known_from(text.as_bytes(), &corpus.alphabet, &crfsuite()).unwrap();
                prop_assert_eq!(&again, &corpus.sequences);
                prop_assert_eq!((report.unknown_labels, report.unknown_attributes), (0, 0));
            }
            (Err(message), Err(line)) => prop_assert!(message.starts_with(&format!("line {line}: ")), "{}", message),
            (found, expected) => prop_assert!(false, "{found:?}, expected {expected:?}"),
        }
    }

    #[test]
    fn any_text_as_crfsuite(text in "[AB:\\\\\t\n\r 1.{}|?é-]{0,60}") {
        match (everywhere(text.as_bytes(), &crfsuite()), naive_crfsuite(&text)) {
            (Ok(corpus), Ok(expected)) => check(&corpus, &expected),
            (Err(message), Err(line)) => prop_assert!(message.starts_with(&format!("line {line}: ")), "{}", message),
            (Err(message), Ok(expected)) => {
                prop_assert!(expected.is_empty() && message.ends_with("an item a line"), "{}", message);
            }
            (found, expected) => prop_assert!(false, "{found:?}, expected {expected:?}"),
        }
    }

    #[test]
    fn what_a_model_does_not_know(train in file(), test in file()) {
        let (Ok(model), Ok(expected)) = (read_from(train.as_bytes(), &crfsuite()), naive_crfsuite(&test)) else {
            return Ok(());
        };
        let model = model.alphabet;
        let known = |name: &str| model.labels.get(name).is_some();
        let unknown = |line: &str| {
            let label = unescape(line.split('\t').next().unwrap());
            match naive_label(&label).unwrap().as_bytes()[0] {
                b'?' => 0,
                b'=' if !label.starts_with('{') => u64::from(!known(&label)),
                _ => label[1..label.len() - 1].split('|').filter(|name| !known(name)).count() as u64,
            }
        };
        let labels: u64 = lines(&test).into_iter().flatten().map(unknown).sum();
        let mut attributes = 0;
        let mut expected = expected;
        for (label, list, _) in expected.iter_mut().flatten() {
            let all = list.len() as u64;
            list.retain(|(name, _)| model.attributes.get(name).is_some());
            attributes += all - list.len() as u64;
            let kept: Vec<&str> = label[1..].split('|').filter(|name| known(name)).collect();
            *label = match (label.as_bytes()[0], &kept[..]) {
                (b'?', _) => continue,
                (b'=', _) if known(&label[1..]) => continue,
                (b'=', _) | (_, []) => "!".into(),
                (_, [one]) => format!("={one}"),
                _ => format!("{{{}", kept.join("|")),
            };
        }
        let whole = read_known_from(test.as_bytes(), &model, &crfsuite()).unwrap();
        prop_assert_eq!(&named(&whole.0, &model), &expected);
        prop_assert_eq!((whole.1.unknown_labels, whole.1.unknown_attributes), (labels, attributes));
        for (chunk, threads) in [(1, 1), (5, 2), (30, 3)] {
            let params = ReadParams { chunk, par: Par::threads(threads), ..crfsuite() };
            prop_assert_eq!(&read_known_from(test.as_bytes(), &model, &params).unwrap(), &whole);
        }
    }

    #[test]
    fn rare_attributes_go(text in file(), least in 2u64..5) {
        let Ok(expected) = naive_crfsuite(&text) else { return Ok(()) };
        let mut counts = HashMap::<String, u64>::new();
        let all = || expected.iter().flatten().flat_map(|item| &item.1);
        all().for_each(|(name, _)| *counts.entry(name.clone()).or_default() += 1);
        let rare = counts.values().filter(|count| **count < least).count();
        let gone = all().filter(|(name, _)| counts[name] < least).count();
        let mut expected = expected.clone();
        expected.iter_mut().flatten().for_each(|item| item.1.retain(|(name, _)| counts[name] >= least));
        let corpus = everywhere(text.as_bytes(), &ReadParams { min_count: least, ..crfsuite() }).unwrap();
        prop_assert_eq!(named(&corpus.sequences, &corpus.alphabet), expected.clone());
        in_order(&corpus.alphabet.attributes, expected.iter().flatten().flat_map(|i| i.1.iter().map(|a| a.0.clone())));
        prop_assert_eq!((corpus.report.rare, corpus.report.rare_occurrences), (rare, gone));
    }
}

/// A macro: row, column, counted from the first item, lower case.
type Macro = (isize, usize, bool, bool);

/// A rule: its letter, and text before each macro.
type Rule = (char, Vec<(String, Macro)>, String);

fn rule() -> impl Strategy<Value = Rule> {
    let cell = (-4isize..5, 0usize..2, prop::bool::weighted(0.2), any::<bool>());
    let cell = cell.prop_map(|(row, column, absolute, lower)| {
        if absolute && row == 0 { (1, column, true, lower) } else { (row, column, absolute, lower) }
    });
    let letter = prop_oneof![4 => Just('U'), 1 => Just('u'), 2 => Just('B'), 1 => Just('b'), 1 => Just('*')];
    (letter, prop::collection::vec(("[0-9:/é ]{0,3}", cell), 0..4), "[a:/]{0,2}")
}

fn written((letter, pieces, end): &Rule) -> String {
    let mut line = letter.to_string();
    for (text, (row, column, absolute, lower)) in pieces {
        let (command, at) = (if *lower { 'X' } else { 'x' }, if *absolute { "@" } else { "" });
        write!(line, "{text}%{command}[{at}{row},{column}]").unwrap();
    }
    line + end
}

fn naive_rule((letter, pieces, end): &Rule, rows: &[Vec<&str>], t: usize) -> String {
    let mut result = letter.to_string();
    for (text, (row, column, absolute, lower)) in pieces {
        let n = rows.len() as isize;
        let at = match (absolute, *row > 0) {
            (false, _) => t as isize + row,
            (true, true) => row - 1,
            (true, false) => n + row,
        };
        let cell = if at < 0 {
            format!("_B-{}", -at)
        } else if at >= n {
            format!("_B+{}", at - n + 1)
        } else {
            rows[at as usize][*column].to_owned()
        };
        result += text;
        result += &if *lower { cell.to_ascii_lowercase() } else { cell };
    }
    result + end
}

/// Columns by the book, for legal files.
fn naive_columns(text: &str, rules: &[Rule], labelled: bool) -> Vec<Vec<Item>> {
    let lines = lines(text);
    let sequences = lines.split(|line| line.is_none()).filter(|sequence| !sequence.is_empty());
    sequences
        .map(|sequence| {
            let rows: Vec<Vec<&str>> = sequence
                .iter()
                .map(|line| line.unwrap().split([' ', '\t', '\r']).filter(|cell| !cell.is_empty()).collect())
                .collect();
            (0..rows.len())
                .map(|t| {
                    let label =
                        if labelled { naive_label(rows[t].last().unwrap()).unwrap() } else { "?".into() };
                    let of = |kind: &str, plain: bool| -> Vec<String> {
                        rules
                            .iter()
                            .filter(|rule| kind.contains(rule.0) && (plain || !rule.1.is_empty()))
                            .map(|rule| naive_rule(rule, &rows, t))
                            .collect()
                    };
                    let attributes = of("Uu*", true).into_iter().map(|name| (name, 1.0)).collect();
                    (label, attributes, if t == 0 { vec![] } else { of("Bb*", false) })
                })
                .collect()
        })
        .collect()
}

fn table() -> impl Strategy<Value = String> {
    let label = prop_oneof![6 => "[ABC]", 1 => Just("?".to_owned()), 1 => r"\{[AB]\|C\}"];
    let end = prop_oneof![6 => Just("\n"), 1 => Just(" \r\n"), 2 => Just("\n\n"), 1 => Just("\r\n \t\r\n\n")];
    let space = prop_oneof![3 => Just(" "), 1 => Just("\t"), 1 => Just("  \t")];
    let row = ("[aAé%]{1,2}", "[xY]", label, end, space.clone(), space, prop::bool::weighted(0.1));
    prop::collection::vec(row, 1..25).prop_map(|rows| {
        let line = |(a, b, label, end, s, s2, indent)| {
            format!("{}{a}{s}{b}{s2}{label}{end}", if indent { " " } else { "" })
        };
        rows.into_iter().map(line).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn columns(text in table(), rules in prop::collection::vec(rule(), 1..6), labelled in any::<bool>(), cut in any::<bool>()) {
        let text = if cut { text.trim_end() } else { &text };
        let mut source = "# a comment %x\n\n".to_owned();
        rules.iter().for_each(|rule| source += &(written(rule) + "\r\n"));
        let template = Template::parse(&source).unwrap();
        prop_assert_eq!(template.source(), source.as_str());
        prop_assert_eq!(template.transitions(), rules.iter().any(|rule| "Bb*".contains(rule.0) && rule.1.is_empty()));
        prop_assert_eq!(template.edges(), rules.iter().any(|rule| "Bb*".contains(rule.0) && !rule.1.is_empty()));
        let most = rules.iter().flat_map(|rule| &rule.1).map(|piece| piece.1.1 + 1).max();
        prop_assert_eq!(template.columns(), most.unwrap_or(0));
        let params = ReadParams { labelled, ..ReadParams::new(Format::Columns(template)) };
        let corpus = everywhere(text.as_bytes(), &params).unwrap();
        check(&corpus, &naive_columns(text, &rules, labelled));
        prop_assert_eq!(corpus.report.columns, 3);
        let (again, report) = read_known_from(text.as_bytes(), &corpus.alphabet, &params).unwrap();
        prop_assert_eq!(&again, &corpus.sequences);
        prop_assert_eq!(report.unknown_edge_attributes, 0);
    }

    #[test]
    fn dictionaries(names in prop::collection::vec("[ab]{0,2}|[a-cé]{3,40}", 0..400)) {
        let mut dictionary = Dictionary::new();
        let mut numbers = HashMap::new();
        for name in &names {
            prop_assert_eq!(dictionary.get(name), numbers.get(name).copied());
            let next = numbers.len() as u32;
            let id = *numbers.entry(name.clone()).or_insert(next);
            prop_assert_eq!(dictionary.intern(name), id);
        }
        in_order(&dictionary, names.iter().cloned());
        let (arena, ends) = dictionary.parts();
        let again = Dictionary::from_parts(arena.to_vec(), ends.to_vec()).unwrap();
        prop_assert_eq!(&again, &dictionary);
        prop_assert!(names.iter().all(|name| again.get(name) == dictionary.get(name)));
        prop_assert_eq!(again.get("not there"), None);
        prop_assert!(again.iter().eq((0..).map_while(|id| dictionary.name(id))));
    }
}

#[test]
fn damaged_dictionaries() {
    let build = |arena: &[u8], ends: &[u64]| Dictionary::from_parts(arena.to_vec(), ends.to_vec());
    assert_eq!(build(b"", &[]).unwrap().len(), 0);
    assert_eq!(build(b"ab", &[0, 1, 2]).unwrap().iter().collect::<Vec<_>>(), ["", "a", "b"]);
    assert_eq!(build(b"\xff", &[1]), Err(DictionaryError::NotText));
    for (arena, ends, id) in [
        ("ab", &[2, 1][..], 1),
        ("ab", &[3], 0),
        ("ab", &[1], 0),
        ("ab", &[], 0),
        ("é", &[1, 2], 0),
        ("ab", &[u64::MAX, 2], 0),
    ] {
        assert_eq!(build(arena.as_bytes(), ends), Err(DictionaryError::BadEnd { id }), "{arena} {ends:?}");
    }
    let twice = build(b"aba", &[1, 2, 3]).unwrap_err();
    assert_eq!(twice.to_string(), "a dictionary that has `a` twice");
    assert_eq!(DictionaryError::BadEnd { id: 3 }.to_string(), "a dictionary whose entry 3 has no legal end");
    assert_eq!(DictionaryError::NotText.to_string(), "a dictionary whose text is not UTF-8");
}

/// Attributes of all items of the one sequence in `text`.
fn expanded(template: &str, text: &str) -> Vec<Vec<String>> {
    let template = Template::parse(template).unwrap();
    let corpus = read_from(text.as_bytes(), &ReadParams::new(Format::Columns(template))).unwrap();
    let [items] = &named(&corpus.sequences, &corpus.alphabet)[..] else { panic!("one sequence") };
    items.iter().map(|item| item.1.iter().map(|a| a.0.clone()).chain(item.2.clone()).collect()).collect()
}

const CRFPP_EXAMPLE: &str = "He        PRP  B-NP\nreckons   VBZ  B-VP\nthe       DT   B-NP\ncurrent   JJ   I-NP\naccount   NN   I-NP\n";

/// The table of CRF++'s manual ("Template basic"), at the third item.
#[test]
fn the_manual_of_crfpp() {
    let template = "U:%x[0,0]\nU:%x[0,1]\nU:%x[-1,0]\nU:%x[-2,1]\nU:%x[0,0]/%x[0,1]\nU:ABC%x[0,1]123\n";
    let items = expanded(template, CRFPP_EXAMPLE);
    assert_eq!(items[2], ["U:the", "U:DT", "U:reckons", "U:PRP", "U:the/DT", "U:ABCDT123"]);
    assert_eq!(items[0], ["U:He", "U:PRP", "U:_B-1", "U:_B-2", "U:He/PRP", "U:ABCPRP123"]);
    let items = expanded("U01:%x[2,0]\nU02:%x[1,0]/%x[5,1]\nB01:%x[-1,0]/%x[0,0]\nB\n", CRFPP_EXAMPLE);
    assert_eq!(items[0], ["U01:the", "U02:reckons/_B+1"]);
    assert_eq!(items[4], ["U01:_B+2", "U02:_B+1/_B+5", "B01:current/account"]);
}

#[test]
fn what_wapiti_adds() {
    let text = "Ab-1 X o\ncdE9é X o\n";
    let items = expanded(
        "*0:%X[0,0]\nU1:%t[0,0,\"^\\u\"]/%T[0,0,\"\\p\"]\nU2:%m[0,0,\"^.?.?\"]|%M[0,0,\"\\u\"]|%m[0,0,\"\\d*$\"]\nU3:%x[@1,0]%x[ @-1, 0 ]\n\
         U4:%m[-1,0,\"B\\W\\d\"]\nU5:%t[0,0,\"[\\u\\d]+[^\\w\\P]\"]\nU6:%m[0,0,\"\\S\\L\\l\\D\"]\nU7:%t[0,0,\"\\\"\"]%t[0,0,\"\\A\\d\"]%m[0,0,\"\\a\\s?\\U\"]\n",
        text,
    );
    assert_eq!(
        items[0],
        [
            "*0:ab-1",
            "U1:true/true",
            "U2:Ab|a|1",
            "U3:Ab-1cdE9é",
            "U4:B-1",
            "U5:false",
            "U6:",
            "U7:falsetrueAb"
        ]
    );
    assert_eq!(
        items[1],
        [
            "*0:cde9é",
            "U1:false/false",
            "U2:cd|e|",
            "U3:Ab-1cdE9é",
            "U4:",
            "U5:false",
            "U6:",
            "U7:falsefalsecd",
            "*0:cde9é"
        ]
    );
}

#[test]
fn bad_templates() {
    let refuse = |source: &str, expected: &str| {
        assert_eq!(Template::parse(source).expect_err(expected).to_string(), expected);
    };
    let none = "found no rule in the template, expected lines such as `U00:%x[0,0]`, and `B` for transitions";
    refuse("", none);
    refuse("# U00:%x[0,0]\n\n", none);
    refuse(
        "U00\nX01:%x[0,0]\n",
        "line 2: found `X01:%x[0,0]`, expected a rule that starts with `U`, `B` or `*`, or a comment that starts with `#`",
    );
    let macros = "`%x[row,column]`, `%t[row,column,\"regexp\"]` or `%m[row,column,\"regexp\"]`";
    refuse("U:%y[0,0]", &format!("line 1: found `%y[0,0]`, expected {macros}"));
    refuse("B\nU:100%", &format!("line 2: found `%`, expected {macros}"));
    for text in ["%x", "%x[", "%x[0]", "%x[,0]", "%x[0,0", "%x[0,0,0]", "%x[a,0]", "%x[0,9999999]", "%x[-,0]"]
    {
        refuse(&format!("U:{text}"), &format!("line 1: found `{text}`, expected `%x[row,column]`"));
    }
    for text in ["%t[0,0]", "%t[0,0,x]", "%t[0,0,\"x\"", "%t[0,0,\"x\",]"] {
        refuse(
            &format!("U:{text}"),
            &format!("line 1: found `{text}`, expected `%t[row,column,\"regexp\"]`"),
        );
    }
    refuse("U:%x[0,-1]", "line 1: found `%x[0,-1]`, expected a column of 0 or more");
    refuse(
        "U:%x[@0,0]",
        "line 1: found `%x[@0,0]`, expected `@1`, `@2`, … from the first item or `@-1`, `@-2`, … from the last",
    );
    refuse(
        "U:%m[0,0,\"a\\\"]",
        "line 1: found `%m[0,0,\"a\\\\\"]`, expected a quote that closes the regular expression",
    );
    let error = Template::parse("U:%m[0,0,\"(a\"]").unwrap_err().to_string();
    assert!(error.starts_with("line 1: found `(a`, expected a regular expression: "), "{error}");
}

fn refuse(params: &ReadParams, text: &[u8], expected: &str) {
    assert_eq!(everywhere(text, params).expect_err(expected), expected);
}

#[test]
fn bad_crfsuite_files() {
    let refuse = |text: &str, expected: &str| refuse(&crfsuite(), text.as_bytes(), expected);
    refuse("", "the file is empty, expected `LABEL<TAB>attribute<TAB>…`, an item a line");
    refuse("\n \r\n\t", "found only blank lines, expected `LABEL<TAB>attribute<TAB>…`, an item a line");
    let number = "expected a finite number after its last colon (a colon in a name is written `\\:`)";
    for value in ["x", "nan", "inf", "1e999", "1 ", "0x1", "2:-"] {
        let text = format!("A\tb\n\nA\tb\t\tw:{value}\tc\n");
        refuse(&text, &format!("line 3: found `w:{value}` in field 4, {number}"));
    }
    let name = "expected a name before its last colon (a colon in a name is written `\\:`)";
    refuse("A\t:\n", &format!("line 1: found `:` in field 2, {name}"));
    refuse("A\tb\r\nA\t:2\r\n", &format!("line 2: found `:2` in field 2, {name}"));
    refuse(
        "A\tb\n\tb\n",
        "line 2: found no label before the first tab, expected one (`?` if it is not known)",
    );
    for set in ["{}", "{A|}", "{|}", "{A||B}"] {
        let braces = "expected labels between the braces, separated by `|`";
        refuse(&format!("A\tb\n\n{set}\tb\n"), &format!("line 3: found `{set}`, {braces}"));
    }
    let weight = "line 1: found the declaration `@weight`, expected items only (weights of sequences are not supported)";
    refuse("@weight:2\nA\tb\n", weight);
    let latin =
        "found bytes that are not UTF-8, expected UTF-8 text (`iconv -f LATIN1 -t UTF-8` converts Latin-1)";
    let text = b"A\tb\n\nB\tcaf\xe9\nA\tw:x\n";
    assert_eq!(everywhere(text, &crfsuite()).unwrap_err(), format!("line 3: {latin}"));
    // The first fault is the one that counts.
    let text = b"A\tb\nA\tw:x\nB\tcaf\xe9\n";
    assert_eq!(
        everywhere(text, &crfsuite()).unwrap_err(),
        format!("line 2: found `w:x` in field 2, {number}")
    );
}

#[test]
fn bad_columns() {
    let params = |template: &str| ReadParams::new(Format::Columns(Template::parse(template).unwrap()));
    let words = params("U00:%x[0,0]\n\nU01:%x[-1,1]/%t[0,2,\"a\"]\n");
    refuse(&words, b"", "the file is empty, expected columns of words, an item a line");
    refuse(&words, b"\r\n\n", "found only blank lines, expected columns of words, an item a line");
    refuse(
        &words,
        b"\na b B\n",
        "template line 3: `%t[0,2,\"a\"]` takes column 2, but the data has columns 0 to 1 before the label",
    );
    refuse(
        &words,
        b"a B\n",
        "template line 3: `%x[-1,1]` takes column 1, but the data has only column 0 before the label",
    );
    refuse(
        &words,
        b"B\n",
        "template line 1: `%x[0,0]` takes column 0, but the data has no column before the label",
    );
    let free = ReadParams { labelled: false, ..words.clone() };
    refuse(
        &free,
        b"a b\n",
        "template line 3: `%t[0,2,\"a\"]` takes column 2, but the data has columns 0 to 1",
    );
    let simple = params("U00:%x[0,0]\nB");
    for bad in ["a b c", "a"] {
        let count = bad.split(' ').count();
        let text = format!("\n\na B\n\nb B\n{bad}\nc\n");
        let hint = "a blank line ends a sequence";
        refuse(
            &simple,
            text.as_bytes(),
            &format!("line 6: found {count} columns, expected 2 as in line 3 ({hint})"),
        );
    }
    refuse(
        &simple,
        b"a B\nb {B|}\n",
        "line 2: found `{B|}`, expected labels between the braces, separated by `|`",
    );
    let latin =
        "found bytes that are not UTF-8, expected UTF-8 text (`iconv -f LATIN1 -t UTF-8` converts Latin-1)";
    refuse(&simple, b"a B\n\xe9 B\n", &format!("line 2: {latin}"));
}

#[test]
fn missing_and_damaged_files() {
    let message = |error: ReadError| error.to_string();
    let missing = "cannot read it: there is no such file (`-` is standard input)";
    assert_eq!(message(read("/no such file.txt", &crfsuite()).unwrap_err()), missing);
    let error = read_known("/no such file.txt", &Alphabet::default(), &crfsuite()).unwrap_err();
    assert_eq!(message(error), missing);
    let error = read_from(&b"\x1f\x8b\x08\0\0\0"[..], &crfsuite()).unwrap_err();
    assert!(message(error).starts_with("a damaged or truncated gzip file: "));
}

#[test]
fn a_sequence_of_a_million_items() {
    const ITEMS: usize = 1_000_000;
    let mut text = String::from("\u{feff}");
    for i in 0..ITEMS {
        writeln!(text, "{}\tw{}\tv:{}", ["A", "B", "?"][i % 3], i % 1000, i % 7).unwrap();
    }
    text.push_str("\n\n\nC\tw0");
    let path = std::env::temp_dir().join(format!("gibbsite-sequences-{}.txt", std::process::id()));
    std::fs::write(&path, &text).unwrap();
    let one = read(&path, &crfsuite()).unwrap();
    let two = read(&path, &ReadParams { par: Par::threads(2), chunk: 100_000, ..crfsuite() }).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert_eq!(one, two);
    assert_eq!(
        one,
        read_from(&zstd(text.as_bytes())[..], &ReadParams { par: Par::threads(3), ..crfsuite() }).unwrap()
    );
    assert_eq!(
        (one.sequences.len(), one.sequences.range(0), one.sequences.items()),
        (2, 0..ITEMS, ITEMS + 1)
    );
    assert_eq!(
        (one.alphabet.labels.len(), one.alphabet.attributes.len(), one.report.lines),
        (3, 1001, ITEMS + 4)
    );
    let last = one.sequences.sequence(0).attributes(ITEMS - 1);
    assert_eq!(last.iter().map(|a| a.1).collect::<Vec<_>>(), [1.0, ((ITEMS - 1) % 7) as f64]);
    // The same in columns.
    let columns = text.replace("\tv:", " v").replace('\u{feff}', "");
    let template = Template::parse("U:%x[1,1]/%x[-1,1]\nB%x[0,1]").unwrap();
    let params = ReadParams { labelled: false, ..ReadParams::new(Format::Columns(template)) };
    let long = columns.trim_end_matches("C\tw0");
    let one = read_from(long.as_bytes(), &params).unwrap();
    assert_eq!(
        one,
        read_from(long.as_bytes(), &ReadParams { par: Par::threads(2), chunk: 1 << 16, ..params }).unwrap()
    );
    assert_eq!((one.sequences.len(), one.sequences.edge_occurrences()), (1, ITEMS - 1));
}

#[test]
fn files_without_labels() {
    let params = ReadParams { labelled: false, ..crfsuite() };
    let corpus = everywhere(b"a:2\tb\n\tc\n\nb\tb:3", &params).unwrap();
    let expected = [
        vec![("?", vec![("a", 2.0), ("b", 1.0)]), ("?", vec![("c", 1.0)])],
        vec![("?", vec![("b", 1.0), ("b", 3.0)])],
    ];
    let owned = |(label, list): &(&str, Vec<(&str, f64)>)| -> Item {
        (label.to_string(), list.iter().map(|(name, value)| (name.to_string(), *value)).collect(), vec![])
    };
    let expected: Vec<Vec<Item>> =
        expected.iter().map(|sequence| sequence.iter().map(owned).collect()).collect();
    assert_eq!(named(&corpus.sequences, &corpus.alphabet), expected);
    assert!(corpus.alphabet.labels.is_empty());
}

/// More attributes than are looked up one by one.
#[test]
fn many_attributes() {
    let mut text = String::new();
    for i in 0..20_000usize {
        write!(text, "L{}", i % 5).unwrap();
        for k in 0..i % 40 {
            let weight = if i > 10_000 && k == 3 { ":0.5" } else { "" };
            let colon = if k == 7 { "\\:" } else { "" };
            write!(text, "\tw{colon}{}{weight}", (i * i + 7919 * k) % 15_013).unwrap();
        }
        text.push_str(if i % 11 == 0 { "\n\n" } else { "\n" });
    }
    let expected = naive_crfsuite(&text).unwrap();
    let one = read_from(text.as_bytes(), &crfsuite()).unwrap();
    assert!(one.alphabet.attributes.len() > 15_000);
    check(&one, &expected);
    for (chunk, threads) in [(10_000, 2), (300_000, 3)] {
        let params = ReadParams { chunk, par: Par::threads(threads), ..crfsuite() };
        assert_eq!(read_from(text.as_bytes(), &params).unwrap(), one);
        let (known, _) = read_known_from(text.as_bytes(), &one.alphabet, &params).unwrap();
        assert_eq!(known, one.sequences);
    }
    // With every second attribute.
    let half: Dictionary = one.alphabet.attributes.iter().step_by(2).collect();
    let model = Alphabet { attributes: half, ..one.alphabet.clone() };
    let mut expected = expected;
    let mut unknown = 0;
    for (_, list, _) in expected.iter_mut().flatten() {
        let all = list.len() as u64;
        list.retain(|(name, _)| model.attributes.get(name).is_some());
        unknown += all - list.len() as u64;
    }
    let (known, report) = read_known_from(text.as_bytes(), &model, &crfsuite()).unwrap();
    assert_eq!(named(&known, &model), expected);
    assert_eq!((report.unknown_attributes, report.unknown_labels), (unknown, 0));
}
