//! What in a statement speaks for the profile: words and short patterns, each with its weight.

use foremind_types::Domain;

use crate::lexicon::{Class, Hit};
use crate::reading::Reading;
use crate::words::Gap;

/// Most signals looked at in one statement; each costs a bounded window of words.
const SIGNALS_PER_STATEMENT: usize = 64;

/// A signal that fired, before the traps are asked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Signal {
    /// Stable name, as in [`foremind_types::Reason`].
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) weight: f32,
    pub(crate) domain: Domain,
    /// First word.
    pub(crate) from: usize,
    /// One past the last word.
    pub(crate) to: usize,
}

/// How the traps treat a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A state of somebody, named by a noun or adjective: negation turns it round.
    State,
    /// Something that somebody does not or may not do: negation is part of it.
    Constraint,
    /// A wish about answers: needs no subject.
    Instruction,
    /// A whole phrase that names its subject.
    Plain,
    /// A person or animal in the owner's care.
    Care,
}

/// The signals of a statement, by place, and whether there are more than are looked at.
pub(crate) fn signals(reading: &Reading<'_>) -> (Vec<Signal>, bool) {
    let mut found = Vec::new();
    let mut overflow = false;
    for hit in &reading.hits {
        if found.len() >= SIGNALS_PER_STATEMENT {
            overflow = true;
            break;
        }
        found.extend(by_word(reading, hit));
        match hit.meaning.class {
            Class::Negation => found.extend(negation(reading, hit)),
            Class::Authority => found.extend(authority(reading, hit)),
            Class::Pet => found.extend(pet(reading, hit)),
            Class::Dependant => found.extend(dependant(reading, hit)),
            Class::Owner => found.extend(age(reading, hit)),
            _ => {}
        }
    }
    // A negated medicine or way of eating is one signal, not two: the constraint covers the word.
    let constraints: Vec<(usize, usize)> = found
        .iter()
        .filter(|s| s.name == "negation-noun")
        .map(|s| (s.from, s.to))
        .collect();
    // "on probation" and "probation" in it are one signal.
    let spans: Vec<(&str, usize, usize)> = found.iter().map(|s| (s.name, s.from, s.to)).collect();
    found.retain(|s| {
        !spans.iter().any(|&(name, from, to)| {
            name == s.name && from <= s.from && s.to <= to && to - from > s.to - s.from
        })
    });
    found.retain(|s| {
        s.name == "negation-noun"
            || !constraints
                .iter()
                .any(|&(from, to)| from <= s.from && s.to <= to && s.kind != Kind::Instruction)
    });
    (found, overflow)
}

/// Abbreviations that are ordinary words in lower case.
const CAPITALS: &[&str] = &["pots", "sox"];

fn by_word(reading: &Reading<'_>, hit: &Hit) -> Option<Signal> {
    if CAPITALS.contains(&reading.words.folded(hit.from))
        && reading.shown(hit.from, hit.to).contains(char::is_lowercase)
    {
        return None;
    }
    let (name, kind, weight) = match hit.meaning.class {
        Class::Medical => ("medical-word", Kind::State, 0.85),
        Class::Dietary => ("dietary-word", Kind::State, 0.85),
        Class::Medication => ("medication-name", Kind::State, 0.85),
        Class::Legal => ("legal-word", Kind::State, 0.8),
        Class::Safety => ("safety-word", Kind::State, 0.8),
        Class::Obligation => ("obligation", Kind::Constraint, 0.7),
        Class::Circumstance => ("circumstance-word", Kind::State, 0.6),
        Class::Instruction => ("standing-instruction", Kind::Instruction, 0.7),
        Class::Plain => ("phrase", Kind::Plain, 0.85),
        _ => return None,
    };
    Some(Signal {
        name,
        kind,
        weight,
        domain: hit.meaning.domain,
        from: hit.from,
        to: hit.to,
    })
}

/// Verbs that make a negated food a taste rather than a rule.
const TASTE: &[&str] = &[
    "like",
    "love",
    "fancy",
    "enjoy",
    "prefer",
    "want",
    "mind",
    "care",
    "think",
    "know",
    "believe",
    "remember",
    "need",
    "wanna",
    "feel",
    "understand",
    "get",
    "see",
    "find",
    "always",
    "usually",
    "normally",
    "just",
    "only",
    "worry",
    "forget",
    "waste",
    "sell",
    "buy",
    "cook",
    "make",
];

/// Words after "eat" or "drink" that make it no rule about a substance.
const EATING_HABIT: &[&str] = &[
    "out",
    "much",
    "breakfast",
    "lunch",
    "dinner",
    "there",
    "here",
    "that",
    "enough",
    "well",
    "it",
    "anything",
    "at",
    "a",
    "all",
    "as",
    "in",
    "with",
    "this",
    "them",
    "my",
    "the",
    "together",
    "yet",
    "like",
    "too",
    "more",
    "so",
    "healthy",
    "properly",
    "very",
    "right",
    "and",
    "or",
    "for",
    "until",
];

/// "I don't eat pork", "can't have dairy", "no shellfish", "can't climb stairs".
fn negation(reading: &Reading<'_>, negation: &Hit) -> Option<Signal> {
    let end = reading.clause_end(negation.to - 1, 8);
    let word = reading.shown(negation.from, negation.to).to_lowercase();
    let word = word.replace('’', "'");
    let verbal = !matches!(
        word.as_str(),
        "no" | "no more"
            | "without"
            | "avoid"
            | "avoids"
            | "avoiding"
            | "avoided"
            | "skip"
            | "off"
            | "cut out"
            | "cutting out"
            | "gave up"
            | "given up"
            | "quit"
            | "zero"
            | "none of"
            | "nothing with"
            | "stopped"
            | "nor"
            | "neither"
    );
    let unable = matches!(
        word.as_str(),
        "can't"
            | "cannot"
            | "can not"
            | "cant"
            | "couldn't"
            | "won't"
            | "mustn't"
            | "must not"
            | "shouldn't"
            | "should not"
            | "no longer"
    );
    let signal = |name, weight, domain, to| {
        Some(Signal {
            name,
            kind: Kind::Constraint,
            weight,
            domain,
            from: negation.from,
            to,
        })
    };
    let mut consuming = None;
    for at in negation.to..end {
        let folded = reading.words.folded(at);
        for hit in reading.within(at, at + 1) {
            match hit.meaning.class {
                Class::Food | Class::Medication
                    if verbal && consuming.is_some_and(|verb| at - verb <= 5) =>
                {
                    return signal("negation-noun", 0.9, eaten(hit), hit.to);
                }
                Class::Food | Class::Restricted | Class::Medication
                    if at - negation.to <= 2
                        && (!verbal
                            || (matches!(word.as_str(), "never" | "not")
                                && hit.meaning.class != Class::Restricted)) =>
                {
                    return signal("negation-noun", 0.9, eaten(hit), hit.to);
                }
                Class::Consume if verbal => consuming = Some(hit.to),
                Class::Ability if at == negation.to || (unable && at == negation.to + 1) => {
                    let habit = matches!(hit.meaning.domain, Domain::Licence)
                        || matches!(folded, "smell" | "hear" | "sweat" | "celebrate" | "vote");
                    if unable
                        || (habit && matches!(word.as_str(), "don't" | "do not" | "dont" | "never"))
                    {
                        return signal("cannot", 0.85, hit.meaning.domain, hit.to);
                    }
                }
                _ => {}
            }
        }
        if TASTE.contains(&folded) {
            return None;
        }
        if verbal
            && at == negation.to
            && matches!(
                folded,
                "eat" | "drink" | "tolerate" | "digest" | "stomach" | "handle"
            )
        {
            let next = reading.words.folded(at + 1);
            let plain = at + 1 < end && !EATING_HABIT.contains(&next);
            let alone = folded == "drink" && (at + 1 == end || matches!(next, "and" | "or" | "so"));
            let food_follows = reading.has(Class::Food, at + 1, (at + 5).min(end));
            if !food_follows && (plain || alone) {
                return signal("negation-verb", 0.6, Domain::Diet, (at + 2).min(end));
            }
        }
    }
    None
}

/// The domain of something eaten, as the owner's rule about it.
fn eaten(hit: &Hit) -> Domain {
    match hit.meaning.domain {
        Domain::Food => Domain::Diet,
        other => other,
    }
}

/// "The surgeon says no lifting", "my landlord forbids drilling", "my doctor has me on two grams".
fn authority(reading: &Reading<'_>, authority: &Hit) -> Option<Signal> {
    let end = reading.sentence(authority.from).to.min(authority.to + 8);
    let directive = reading.first(Class::Directive, authority.to, end)?;
    let reach = reading.sentence(authority.from).to.min(directive.to + 8);
    let ordered = reading.within(directive.to, reach).iter().any(|h| {
        matches!(
            h.meaning.class,
            Class::Negation
                | Class::Obligation
                | Class::Food
                | Class::Medication
                | Class::Medical
                | Class::Restricted
        )
    });
    let restrictive = matches!(
        reading.words.folded(directive.from),
        "forbade"
            | "forbids"
            | "bans"
            | "banned"
            | "limits"
            | "limited"
            | "restricts"
            | "restricted"
            | "capped"
            | "won't"
            | "doesn't"
            | "don't"
            | "only"
            | "signed"
            | "took"
            | "requires"
            | "ordered"
    );
    if !ordered && !restrictive {
        return None;
    }
    let domain = match authority.meaning.domain {
        Domain::General => Domain::Condition,
        other => other,
    };
    Some(Signal {
        name: "order",
        kind: Kind::Constraint,
        weight: 0.7,
        domain,
        from: authority.from,
        to: directive.to,
    })
}

/// "I have two cats", "we adopted a greyhound": the animal is the owner's.
fn pet(reading: &Reading<'_>, pet: &Hit) -> Option<Signal> {
    let start = reading.clause_start(pet.from, 6);
    let owning = (start..pet.from).rev().find(|&at| {
        matches!(
            reading.words.folded(at),
            "have" | "got" | "adopted" | "own" | "keep" | "rescued" | "i've" | "we've"
        )
    })?;
    let subject = owning > 0 && reading.is(Class::Owner, owning - 1)
        || matches!(reading.words.folded(owning), "i've" | "we've");
    let compound = reading.words.folded(pet.to);
    if !subject
        || matches!(
            compound,
            "food" | "show" | "sitter" | "walker" | "person" | "toy" | "treats" | "cafe"
        )
    {
        return None;
    }
    Some(Signal {
        name: "animal-kept",
        kind: Kind::Care,
        weight: 0.6,
        domain: Domain::Pets,
        from: owning,
        to: pet.to,
    })
}

/// Ten and what follows, in words.
const AGES: &[&str] = &[
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
];

/// "I'm 14", "I just turned 67": an age that changes answers.
fn age(reading: &Reading<'_>, owner: &Hit) -> Option<Signal> {
    let word = reading.words.folded(owner.from);
    let mut at = owner.to;
    if !matches!(word, "i'm" | "im" | "i") {
        return None;
    }
    let mut stated = word != "i";
    while matches!(
        reading.words.folded(at),
        "am" | "just" | "only" | "turned" | "nearly" | "almost"
    ) {
        stated |= matches!(reading.words.folded(at), "am" | "turned");
        at += 1;
    }
    let number = reading.words.folded(at);
    let years: u8 = match AGES.iter().position(|a| *a == number) {
        Some(teen) => 10 + teen as u8,
        None => number.parse().ok()?,
    };
    let next = reading.words.folded(at + 1);
    let bare = at + 1 == reading.words.len() || !reading.words.word(at + 1).before.is_empty();
    let plain = bare
        || matches!(
            next,
            "years" | "and" | "now" | "this" | "next" | "in" | "last" | "so"
        );
    let special = (5..18).contains(&years) || (60..=115).contains(&years);
    (stated && plain && special).then(|| Signal {
        name: "age",
        kind: Kind::State,
        weight: 0.6,
        domain: Domain::General,
        from: owner.from,
        to: at + 1,
    })
}

/// "I have a newborn", "our twins are two", "my 6-year-old".
fn dependant(reading: &Reading<'_>, child: &Hit) -> Option<Signal> {
    let start = reading.clause_start(child.from, 5);
    let young = matches!(
        reading.words.folded(child.from),
        "newborn" | "baby" | "infant" | "toddler" | "twins" | "triplets" | "year" | "yr"
    ) || reading
        .words
        .phrase(child.from, child.to)
        .starts_with("foster");
    let numbered = (child.to..(child.to + 4).min(reading.words.len())).any(|at| {
        reading
            .words
            .folded(at)
            .parse::<u8>()
            .is_ok_and(|age| age < 18)
            && !reading.words.word(at).before.has(Gap::SENTENCE)
    });
    let owned = (start..child.from).rev().find(|&at| {
        matches!(
            reading.words.folded(at),
            "my" | "our" | "i've" | "we've" | "have" | "had" | "got" | "adopted"
        )
    })?;
    let owner = matches!(reading.words.folded(owned), "my" | "our" | "i've" | "we've")
        || owned > 0 && reading.is(Class::Owner, owned - 1);
    let elsewhere = reading
        .within(owned, child.from)
        .iter()
        .any(|h| matches!(h.meaning.class, Class::Other | Class::Third | Class::Spouse));
    if !owner || elsewhere || !(young || numbered) {
        return None;
    }
    Some(Signal {
        name: "child-in-care",
        kind: Kind::Care,
        weight: 0.6,
        domain: Domain::Dependant,
        from: owned,
        to: child.to,
    })
}
