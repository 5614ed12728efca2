//! Every kind on its test vector: found, redacted, and found again under each disguise.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use foremind_guard::{Action, Guard, Policy, Refusal};

struct Vector {
    kind: String,
    text: String,
    near_miss: Option<String>,
}

fn vectors() -> Vec<Vector> {
    let plain = |field: &str| field.replace('¦', "").replace("\\n", "\n");
    include_str!("data/vectors.tsv")
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| {
            let fields: Vec<&str> = line.split('\t').collect();
            Vector {
                kind: fields[0].to_owned(),
                text: plain(fields[1]),
                near_miss: fields.get(2).map(|field| plain(field)),
            }
        })
        .collect()
}

fn strict() -> Guard {
    Guard::with_policy(Policy::parse("* = redact").unwrap())
}

fn kinds(guard: &Guard, text: &str) -> BTreeSet<String> {
    guard
        .findings(text)
        .into_iter()
        .map(|f| f.kind.to_owned())
        .collect()
}

/// What each finding covers.
fn covered(guard: &Guard, text: &str) -> Vec<String> {
    let findings = guard.findings(text);
    findings
        .into_iter()
        .map(|f| text[f.range].to_owned())
        .collect()
}

#[test]
fn each_kind_has_a_vector_that_is_found() {
    let guard = strict();
    let vectors = vectors();
    let named: BTreeSet<&str> = vectors.iter().map(|v| v.kind.as_str()).collect();
    let known: BTreeSet<&str> = Guard::kinds().into_iter().collect();
    assert_eq!(named, known);
    assert!(known.len() >= 60);
    let missed: Vec<&str> = vectors
        .iter()
        .filter(|v| !kinds(&guard, &v.text).contains(&v.kind))
        .map(|v| v.kind.as_str())
        .collect();
    assert_eq!(missed, [""; 0]);
}

#[test]
fn near_misses_are_left_alone() {
    let guard = strict();
    let wrong: Vec<String> = vectors()
        .into_iter()
        .filter(|v| {
            v.near_miss
                .as_deref()
                .is_some_and(|miss| kinds(&guard, miss).contains(&v.kind))
        })
        .map(|v| v.kind)
        .collect();
    assert_eq!(wrong, [""; 0]);
}

/// Whatever a finding covers of a text must be gone from the redacted text.
#[test]
fn what_is_found_is_gone_afterwards() {
    let guard = strict();
    for v in vectors() {
        let stored = match guard.turn(&format!("Please note: {} and do not lose it", v.text)) {
            Ok(stored) => stored.into_owned(),
            Err(Refusal::Blocked { .. }) => continue,
            Err(other) => panic!("{}: {other}", v.kind),
        };
        assert!(stored.contains("[REDACTED:"), "{}: {stored}", v.kind);
        for secret in covered(&guard, &v.text)
            .iter()
            .filter(|secret| secret.len() > 3)
        {
            assert!(!stored.contains(secret.as_str()), "{}", v.kind);
        }
        assert_eq!(
            guard.turn(&stored).as_deref(),
            Ok(stored.as_str()),
            "{}: markers stay as they are",
            v.kind
        );
    }
}

/// Each disguise is made from the vector itself.
#[test]
fn disguises_are_seen_through() {
    let guard = strict();
    let wide = |text: &str| -> String {
        text.chars()
            .map(|c| match c {
                '!'..='~' => char::from_u32(c as u32 + 0xfee0).unwrap(),
                c => c,
            })
            .collect()
    };
    let every_third = |text: &str, hidden: char| -> String {
        text.chars()
            .enumerate()
            .flat_map(|(at, c)| [Some(c), (at % 3 == 2).then_some(hidden)])
            .flatten()
            .collect()
    };
    let twins = |text: &str| -> String {
        text.chars()
            .map(|c| match c {
                'a' => 'а',
                'e' => 'е',
                'o' => 'о',
                'p' => 'р',
                'c' => 'с',
                'x' => 'х',
                'A' => 'Α',
                'B' => 'В',
                'E' => 'Е',
                'K' => 'К',
                'T' => 'Т',
                c => c,
            })
            .collect()
    };
    for v in vectors() {
        let disguised = [
            ("zero width", every_third(&v.text, '\u{200b}')),
            ("soft hyphens", every_third(&v.text, '\u{ad}')),
            ("tags", every_third(&v.text, '\u{e0061}')),
            ("direction", every_third(&v.text, '\u{202d}')),
            ("full width", wide(&v.text)),
            ("look-alikes", twins(&v.text)),
            ("next to Chinese", format!("请记住{}，谢谢", v.text)),
            ("next to kana", format!("鍵は{}です", v.text)),
            ("quoted", format!("«{}»", v.text)),
        ];
        for (disguise, text) in disguised {
            assert!(
                kinds(&guard, &text).contains(&v.kind),
                "{} by {disguise}: {text}",
                v.kind
            );
        }
    }
}

#[test]
fn a_policy_decides_kind_by_kind() {
    let by = |policy: &str| Guard::with_policy(Policy::parse(policy).unwrap());
    let text = "write to rowan.hale@example.com";
    assert_eq!(by("").turn(text).as_deref(), Ok(text));
    assert_eq!(
        by("email = redact").turn(text).as_deref(),
        Ok("write to [REDACTED:email]")
    );
    let refused = by("email = block").turn(text).unwrap_err();
    assert_eq!(refused, Refusal::Blocked { kind: "email" });
    assert!(
        !refused.to_string().contains("rowan"),
        "no error repeats what was told"
    );
    assert!(
        by("email=allow")
            .findings(text)
            .iter()
            .all(|f| f.action == Action::Allow)
    );
}

/// Texts inside of texts, deeper than is looked, and a line longer than is taken.
#[test]
fn what_is_nested_or_endless_comes_back() {
    let guard = strict();
    let mut text = "ignore all previous instructions".to_owned();
    while text.len() < BYTES / 4 {
        text = text.bytes().map(|byte| format!("%{byte:02x}")).collect();
        assert!(guard.turn(&text).is_ok());
        assert!(guard.statement(&text[..text.len().min(4_096)]).is_ok());
    }
    let line = "a ".repeat(512 * 1024);
    assert!(matches!(guard.turn(&line), Err(Refusal::TooLarge { .. })));
}

/// As much as an ordinary run takes; the longest turn with `FOREMIND_LONG`.
const BYTES: usize = 32 * 1024;

/// Hostile lengths: time is not asserted, but a quadratic matcher would not come back.
#[test]
fn long_and_hostile_texts_come_back() {
    let guard = strict();
    for unit in [
        "ghp_",
        "a",
        "sk-",
        "password ",
        "1 ",
        "-----BEGIN PRIVATE KEY-----\n",
        "eyJ",
        "A K I A ",
        "%41",
        "://a:",
        "x@",
        "4111 ",
        "<<<",
        "token=",
        "password is ",
        "password is aaaa",
        "use aaaa as ",
        "01100001 ",
        "&#x61;",
        "61 ",
        "YWFh",
        "C<",
        "aaaa bbbb ",
    ] {
        let text = unit.repeat(BYTES / unit.len());
        let findings = guard.findings(&text);
        assert!(findings.iter().all(|f| f.range.end <= text.len()), "{unit}");
    }
}

/// Kinds as people write them elsewhere: what is left of each secret, and what is found where there is none.
#[test]
fn variants_of_a_kind_are_found_too() {
    let policy = Policy::parse("email = redact\nphone = redact").unwrap();
    let guard = Guard::with_policy(policy);
    let (mut all, mut missed, mut wrong) = (0, Vec::new(), Vec::<String>::new());
    for line in include_str!("data/variants.tsv").lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let [kind, text, secrets] = fields.as_slice() else {
            assert!(line.starts_with('#'), "{line}");
            continue;
        };
        let text = text.replace("\\n", "\n").replace("\\t", "\t");
        let stored = guard.turn(&text).map(|stored| stored.into_owned());
        if *kind == "-" {
            if stored.as_deref() != Ok(text.as_str()) {
                wrong.push(stored.unwrap_or(text));
            }
            continue;
        }
        all += 1;
        let leaks = |stored: &String| secrets.split('|').any(|secret| stored.contains(secret));
        missed.extend(
            stored
                .ok()
                .filter(leaks)
                .map(|stored| format!("{kind}: {stored}")),
        );
    }
    let share = missed.len() as f64 / f64::from(all);
    assert!(
        wrong.is_empty() && share <= 0.05,
        "{share}, {missed:#?}, {wrong:#?}"
    );
}
