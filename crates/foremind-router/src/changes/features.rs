//! What speaks for and against a pair of statements, as whole numbers for the score.

use super::*;

/// Names of the features, in the order of [`features`].
pub const FEATURE_NAMES: &[&str] = &[
    "bias",
    "shared",
    "cover-earlier",
    "cover-later",
    "shared-names",
    "matter",
    "head",
    "change",
    "correct",
    "end",
    "return",
    "add",
    "same",
    "trouble-solved",
    "solved",
    "differ",
    "equal",
    "both-numbers-apart",
    "owner-both",
    "owner-lost",
    "new-person",
    "shared-person",
    "planned-shared",
    "planned",
    "parts",
    "closeness",
    "close-change",
    "shared-change",
    "name-both",
    "negation",
    "frame",
    "owner-neither",
    "close-shared",
    "no-vector",
    "matter-change",
    "new-names",
    "trouble-earlier",
    "later-length",
    "frame-differ",
    "close-solved",
    "now",
    "close-now",
    "end-names",
    "matter-now",
    "owner-lost-names",
    "return-shared",
    "correct-shared",
    "close-square",
    "change-names",
    "name-shared",
    "name-earlier",
    "matter-solved",
    "close-trouble",
    "owner-matter",
    "differ-shared",
    "no-share",
];

/// Places in [`FEATURE_NAMES`].
pub(super) const SHARED: usize = 1;
pub(super) const DIFFER: usize = 15;

/// Features of a pair, in thousandths.
pub(super) fn features(earlier: &Facts, later: &Facts, closeness: Option<i32>) -> Vec<i32> {
    let shared: Vec<&Stem> = later
        .stems
        .iter()
        .filter(|stem| earlier.stems.iter().any(|e| e.stem == stem.stem))
        .collect();
    let names = shared
        .iter()
        .filter(|s| s.name || earlier.stems.iter().any(|e| e.stem == s.stem && e.name))
        .count();
    let share = |n: usize, of: usize| (n * 1000).checked_div(of).unwrap_or(0) as i32;
    let flag = |is: bool| if is { 1000 } else { 0 };
    let n = shared.len();
    let count = (n.min(4) * 1000) as i32;
    let head = |facts: &Facts, other: &Facts| {
        facts
            .stems
            .first()
            .is_some_and(|first| other.stems.iter().any(|s| s.stem == first.stem))
    };
    let change = later.has(Cue::Change);
    let now = later.has(Cue::Now);
    let matter = later.matters.intersection(&earlier.matters).count();
    let amounts = amounts(earlier, later);
    let close = closeness.unwrap_or(0).clamp(0, 1000);
    let product = |a: i32, b: i32| a * b / 1000;
    let new_person = later.persons.iter().any(|p| !earlier.persons.contains(p));
    let shared_person = later.persons.iter().any(|p| earlier.persons.contains(p));
    let new_names = later
        .stems
        .iter()
        .filter(|s| s.name && !earlier.stems.iter().any(|e| e.stem == s.stem))
        .count();
    let solved = later.has(Cue::Solved);
    let frame = frame(earlier, later);
    vec![
        1000,
        count,
        share(n, earlier.stems.len()),
        share(n, later.stems.len()),
        (names.min(2) * 1000) as i32,
        (matter.min(2) * 1000) as i32,
        flag(head(later, earlier)) + flag(head(earlier, later)),
        flag(change),
        flag(later.has(Cue::Correct)),
        flag(later.has(Cue::End)),
        flag(later.has(Cue::Return)),
        flag(later.has(Cue::Add)),
        flag(later.has(Cue::Same)),
        flag(solved && earlier.has(Cue::Trouble)),
        flag(solved),
        flag(amounts == Amounts::Differ),
        flag(amounts == Amounts::Equal),
        flag(
            amounts == Amounts::Apart
                && !earlier.quantities.is_empty()
                && !later.quantities.is_empty(),
        ),
        flag(earlier.owner && later.owner),
        flag(earlier.owner && !later.involves_owner),
        flag(new_person),
        flag(shared_person),
        product(count, flag(later.planned)),
        flag(later.planned),
        i32::from(earlier.parts.min(3)) * 1000,
        close,
        product(close, flag(change)),
        product(count, flag(change)),
        flag(later.has(Cue::Name) && earlier.has(Cue::Name)),
        flag(later.negated != earlier.negated),
        frame,
        flag(!earlier.owner && !later.involves_owner),
        product(close, count),
        flag(closeness.is_none()),
        product((matter.min(1) * 1000) as i32, flag(change)),
        (new_names.min(3) * 1000) as i32,
        flag(earlier.has(Cue::Trouble)),
        (later.stems.len().min(16) * 1000 / 16) as i32,
        product(frame, flag(amounts == Amounts::Differ)),
        product(close, flag(solved)),
        flag(now),
        product(close, flag(now)),
        product((names.min(2) * 1000) as i32, flag(later.has(Cue::End))),
        product((matter.min(1) * 1000) as i32, flag(now)),
        product(
            flag(earlier.owner && !later.involves_owner),
            (new_names.min(2) * 1000) as i32,
        ),
        product(count, flag(later.has(Cue::Return))),
        product(count, flag(later.has(Cue::Correct))),
        product(close, close),
        product((names.min(2) * 1000) as i32, flag(change)),
        product(count, flag(later.has(Cue::Name) && earlier.has(Cue::Name))),
        flag(earlier.has(Cue::Name) && !later.has(Cue::Name)),
        product((matter.min(1) * 1000) as i32, flag(solved)),
        product(close, flag(earlier.has(Cue::Trouble))),
        product(
            (matter.min(1) * 1000) as i32,
            flag(earlier.owner && later.owner),
        ),
        product(count, flag(amounts == Amounts::Differ)),
        flag(n == 0),
    ]
}

/// Share of the earlier statement's words, function words included, that the later one repeats in order.
pub(super) fn frame(earlier: &Facts, later: &Facts) -> i32 {
    let (a, b) = (&earlier.words, &later.words);
    if a.is_empty() || b.is_empty() {
        return 0;
    }
    let mut row = vec![0_u16; b.len() + 1];
    for word in a {
        let mut diagonal = 0;
        for (at, other) in b.iter().enumerate() {
            let above = row[at + 1];
            row[at + 1] = if word == other {
                diagonal + 1
            } else {
                above.max(row[at])
            };
            diagonal = above;
        }
    }
    i32::from(row[b.len()]) * 1000 / a.len().min(b.len()) as i32
}
