//! Adds signals up and says what follows.

use foremind_types::order::sort_by;
use foremind_types::{
    Ambient, Domain, Grade, Judgement, Reason, Route, Severity, Stage, Subject, Tier, Ttl,
};

use crate::kinds;
use crate::lexicon::Class;
use crate::lifetime;
use crate::reading::Reading;
use crate::signals::{self, Kind, Signal};
use crate::traps::{self, Finding, Outcome, Trap};
use crate::triggers::{Force, Found};
use crate::{Frame, Keep, Routing, Tables};

/// Thresholds of the profile: health and food, other domains.
const THRESHOLD_HEALTH: f32 = 0.4;
const THRESHOLD_OTHER: f32 = 0.6;
/// Share of its weight that a loosely tied signal keeps.
const LOOSE_SHARE: f32 = 0.5;
/// Most reasons of one route.
const REASONS: usize = 12;
/// Most kinds of fact that one route names.
const KINDS: usize = 8;

/// Whether the turn is work on somebody else's words: a story, a role play, a translation.
pub(crate) fn foreign_words(reading: &Reading<'_>) -> bool {
    let head = reading.words.len().min(60);
    let asks = reading.has(Class::Request, 0, head);
    let quoted = (0..reading.words.len())
        .filter(|w| reading.words.word(*w).quoted)
        .count();
    reading.has(Class::Fiction, 0, head)
        || (asks && reading.has(Class::Quote, 0, head) && quoted * 2 > reading.words.len())
}

/// Scores are quantised so that every host compares the same numbers.
pub(crate) fn quantised(score: f32) -> f32 {
    (score.clamp(0.0, 1.0) * 10_000.0).round() / 10_000.0
}

/// The verdict on a statement.
pub(crate) fn of(reading: &Reading<'_>, frame: Frame, at: &Ambient, tables: &Tables) -> Routing {
    let (found, overflow) = signals::signals(reading);
    let mut judged: Vec<(Signal, Finding)> = found
        .iter()
        .map(|signal| (*signal, traps::judge(reading, signal, &found)))
        .collect();
    let of_kind = of_kind(reading, tables, &found, &mut judged);
    let own = foreign_words(reading);
    if own || frame.foreign_words {
        let trap = Trap {
            name: "trap-foreign-words",
            from: 0,
            to: 0,
        };
        for (signal, finding) in &mut judged {
            if signal.name == "standing-instruction" || matches!(finding.outcome, Outcome::Held(_))
            {
                continue;
            }
            // A sentence that asks for a story, or quotes one, is one; a fact beside it may still be the
            // owner's ("Write her a story. She can't have nuts."), so it is shown in doubt.
            let sentence = reading.sentence(signal.from);
            let (from, to) = (sentence.from, sentence.to);
            let foreign = [Class::Fiction, Class::Request, Class::Quote]
                .into_iter()
                .any(|class| reading.has(class, from, to))
                || (signal.from..signal.to).any(|w| reading.words.word(w).quoted);
            finding.outcome = if own && foreign {
                Outcome::Held(trap)
            } else {
                Outcome::Doubt(trap)
            };
        }
    }

    let mut counting: Vec<(f32, Signal, Finding)> = judged
        .iter()
        .filter_map(|(signal, finding)| {
            let weight = match finding.outcome {
                Outcome::Free | Outcome::Doubt(_) => signal.weight,
                Outcome::Loose(_) => signal.weight * LOOSE_SHARE,
                Outcome::Held(_) => return None,
            };
            Some((weight, *signal, *finding))
        })
        .collect();
    sort_by(&mut counting, |a, b| {
        b.0.total_cmp(&a.0).then(a.1.from.cmp(&b.1.from))
    });

    let strongest = counting.first();
    let next = counting.get(1).map_or(0.0, |c| c.0);
    // More signals than are looked at: what was not seen could be a modifier, so the statement is shown.
    let floor = if overflow { THRESHOLD_OTHER } else { 0.0 };
    let score = quantised(strongest.map_or(0.0, |c| c.0 + next / 2.0).max(floor));
    let domain = strongest.map_or_else(|| topic(reading), |c| domain_of(reading, &c.1, &counting));
    let threshold = if domain.is_health_or_food() {
        THRESHOLD_HEALTH
    } else {
        THRESHOLD_OTHER
    };
    let profile = score >= threshold;
    let certain = counting.iter().any(|c| c.2.outcome == Outcome::Free);
    let subject = strongest
        .map(|c| c.2.subject)
        .or_else(|| judged.first().map(|j| j.1.subject))
        .unwrap_or_else(|| subject_of(reading));
    let row = tables.consequences().of(domain);

    let care_only = counting
        .iter()
        .all(|c| matches!(c.1.name, "animal-kept" | "child-in-care") || c.1.kind == Kind::Care);
    let gravest = of_kind
        .iter()
        .filter_map(|found| tables.kinds().kinds.get(usize::from(found.kind)))
        .map(|kind| kind.severity)
        .max()
        .unwrap_or(Severity::Mild);
    let grade = match row.map(|r| r.grade) {
        _ if !profile => Grade::Informer,
        _ if gravest == Severity::Severe => Grade::Modifier,
        _ if care_only => Grade::Circumstance,
        // A rule is a rule, whatever it is about.
        Some(Grade::Circumstance)
            if strongest.is_some_and(|c| c.1.kind == signals::Kind::Constraint) =>
        {
            Grade::Modifier
        }
        Some(grade) => grade,
        None => Grade::Circumstance,
    };
    let severe = reading.has(Class::Severe, 0, reading.words.len());
    let severity = match row.map_or(Severity::Mild, |r| r.severity) {
        _ if !profile => Severity::Mild,
        _ if severe => Severity::Severe,
        severity => severity.max(gravest),
    };
    let (attribute, value) = tables
        .attributes()
        .find(reading.text, &reading.words)
        .filter(|_| !reading.sentences.iter().all(|s| s.question))
        .unzip();

    let valid_from_ms = lifetime::stated_start(&reading.words, at)
        .filter(|_| !reading.sentences.iter().all(|s| s.question));

    Routing {
        keep: keep(
            reading,
            profile,
            attribute.is_some() || valid_from_ms.is_some(),
        ),
        route: Route {
            grade,
            tier: if profile { Tier::Profile } else { Tier::Store },
            priority: priority(grade, severity, score),
            severity,
            domain,
            affects: affects(row.map(|r| r.affects.as_slice()), domain, &of_kind, tables),
            ttl: ttl(
                reading,
                at,
                row.is_some_and(|r| r.permanent)
                    && profile
                    && subject != Subject::Dependant
                    && (domain != Domain::Procedure
                        || reading.has(Class::Past, 0, reading.words.len())),
                domain,
            ),
            score,
            reasons: reasons(reading, &judged, overflow, &of_kind, tables),
            stage: Stage::Lexical,
            judgement: match (profile, certain) {
                (true, true) => Judgement::Settled,
                (true, false) => Judgement::Pending,
                (false, _) => Judgement::Unrouted,
            },
        },
        subject,
        attribute,
        value,
        valid_from_ms,
    }
}

/// The kinds of fact that the statement is of. Those that say enough by themselves become signals where no other signal
/// covers them.
fn of_kind(
    reading: &Reading<'_>,
    tables: &Tables,
    found: &[Signal],
    judged: &mut Vec<(Signal, Finding)>,
) -> Vec<Found> {
    let mut kept = Vec::new();
    for kind_found in tables.triggers().of(&reading.words) {
        let Some(kind) = tables.kinds().kinds.get(usize::from(kind_found.kind)) else {
            continue;
        };
        let care = matches!(
            kind.domain,
            Domain::Culture | Domain::People | Domain::Pets | Domain::Dependant
        );
        let signal = Signal {
            name: "fact-kind",
            kind: match kind_found.plain {
                _ if care => Kind::Care,
                true => Kind::Plain,
                false => Kind::State,
            },
            weight: match kind_found.force {
                Force::Strong => KIND_STRONG,
                _ if kind.domain.is_health_or_food() => KIND_HEALTH,
                _ => KIND_OTHER,
            },
            domain: kind.domain,
            from: kind_found.from,
            to: kind_found.to,
        };
        let finding = traps::judge(reading, &signal, found);
        let noted = match finding.outcome {
            Outcome::Held(trap) => UNTIED.contains(&trap.name),
            _ => true,
        };
        if !noted {
            continue;
        }
        if kept.len() < KINDS {
            kept.push(kind_found);
        }
        // Words of ordinary talk betray kinds of fact as well ("the dog", "python"): only a phrase that names the owner, one
        // marked as strong and the name of a medicine that the owner takes decide by themselves. The others wait for a
        // question that names what they affect.
        let decides = match kind_found.force {
            Force::Noted => false,
            Force::Strong => true,
            Force::Tied if kind.domain == Domain::Medication => finding.outcome == Outcome::Free,
            Force::Tied => kind_found.plain && !care,
        };
        let covered = found
            .iter()
            .any(|s| s.from < signal.to && signal.from < s.to);
        if !covered && decides {
            judged.push((signal, finding));
        }
    }
    kept
}

/// Weights of a phrase that betrays a kind of fact.
const KIND_HEALTH: f32 = 0.85;
const KIND_OTHER: f32 = 0.6;
/// Counts where it is tied loosely, too.
const KIND_STRONG: f32 = 1.2;
/// Traps that leave open whose fact it is: no signal, but worth a join.
const UNTIED: &[&str] = &[
    "trap-no-subject",
    "trap-topic",
    "trap-request",
    "trap-unbound",
    "trap-other-subject",
];

/// Domains of question that the statement may change: those of its kinds, else those of its domain.
fn affects(
    row: Option<&[Domain]>,
    domain: Domain,
    of_kind: &[Found],
    tables: &Tables,
) -> Vec<Domain> {
    let mut affects = Vec::new();
    let mut add = |domain: Domain| {
        if domain != Domain::General && !affects.contains(&domain) {
            affects.push(domain);
        }
    };
    for found in of_kind {
        if let Some(kind) = tables.kinds().kinds.get(usize::from(found.kind)) {
            for cue in kind.affects.both(&kind.affects) {
                if let Some(cue) = tables.cues().cues.get(usize::from(cue)) {
                    add(cue.domain);
                }
            }
        }
    }
    if of_kind.is_empty() {
        row.unwrap_or_default().iter().for_each(|d| add(*d));
    } else {
        add(domain);
    }
    affects
}

/// The domain of the strongest signal; a general one takes the domain of whatever else is named.
fn domain_of(
    reading: &Reading<'_>,
    signal: &Signal,
    counting: &[(f32, Signal, Finding)],
) -> Domain {
    if signal.domain != Domain::General {
        return signal.domain;
    }
    counting
        .iter()
        .map(|c| c.1.domain)
        .find(|d| *d != Domain::General)
        .unwrap_or_else(|| topic(reading))
}

/// The domain that the words name, without any signal.
fn topic(reading: &Reading<'_>) -> Domain {
    let named = |h: &&crate::lexicon::Hit| h.meaning.domain != Domain::General;
    let strong = reading
        .hits
        .iter()
        .filter(|h| h.meaning.class.is_signal())
        .find(named);
    strong
        .or_else(|| {
            reading.hits.iter().find(|h| {
                matches!(
                    h.meaning.class,
                    Class::Topic | Class::Food | Class::Pet | Class::Dependant
                ) && named(h)
            })
        })
        .map_or(Domain::General, |h| h.meaning.domain)
}

/// Whom a statement without signals is about: the first person it names.
fn subject_of(reading: &Reading<'_>) -> Subject {
    reading
        .hits
        .iter()
        .find_map(|h| match h.meaning.class {
            Class::Owner => Some(Subject::Owner),
            Class::Dependant | Class::Pet => Some(Subject::Dependant),
            Class::Spouse | Class::Other | Class::Third => Some(Subject::Other),
            _ => None,
        })
        .unwrap_or(Subject::None)
}

/// Rank among circumstances: severity first, then grade, then score.
pub(crate) fn priority(grade: Grade, severity: Severity, score: f32) -> f32 {
    let severity = match severity {
        Severity::Severe => 0.6,
        Severity::Moderate => 0.4,
        Severity::Mild => 0.2,
    };
    match grade {
        Grade::Modifier => quantised(severity + 0.2 + 0.2 * score),
        Grade::Circumstance => quantised(severity + 0.2 * score),
        Grade::Informer => quantised(0.1 * score),
    }
}

fn ttl(reading: &Reading<'_>, at: &Ambient, permanent: bool, domain: Domain) -> Ttl {
    // What is permanent by nature does not end with a date that its sentence happens to name.
    let lasting = permanent && matches!(domain, Domain::Allergy | Domain::Disability);
    // The day on which a plan comes true is no end of it.
    let start = lifetime::stated_start(&reading.words, at);
    let begins = |ttl: &Ttl| {
        let day_ms = 86_400_000;
        start.is_some_and(|start| ttl.until_ms().is_some_and(|until| until <= start + day_ms))
    };
    match lifetime::stated_end(&reading.words, at) {
        Some(ttl) if !lasting && !begins(&ttl) => ttl,
        _ if permanent => Ttl::Permanent,
        _ => Ttl::UntilChanged,
    }
}

/// Least and most words of a statement that names nobody and is kept: an exclamation has fewer, pasted text more.
const IMPERSONAL_WORDS: usize = 4;
const IMPERSONAL_WORDS_MOST: usize = 60;

/// Whether anything is kept of a statement at all.
fn keep(reading: &Reading<'_>, profile: bool, attribute: bool) -> Keep {
    if profile || attribute {
        return Keep::Record;
    }
    let count = reading.words.len();
    let owner = reading.has(Class::Owner, 0, count);
    let asks = !reading.sentences.is_empty() && reading.sentences.iter().all(|s| s.question);
    let head = count.min(6);
    // "I write Go at work" asks for nothing.
    let states = matches!(reading.words.folded(0), "i" | "we");
    let requests = reading
        .within(0, head)
        .iter()
        .any(|hit| hit.meaning.class == Class::Request && !(states && hit.to - hit.from == 1))
        || reading.has(Class::Plan, 0, head);
    let greets = reading.is(Class::Greeting, 0) && count <= 8;
    if asks || requests || greets {
        return Keep::Nothing;
    }
    // "The order service is on Postgres now" names nobody, and is what a later question asks about.
    if !(owner || subject_of(reading) != Subject::None) {
        return if (IMPERSONAL_WORDS..=IMPERSONAL_WORDS_MOST).contains(&count) {
            Keep::Episode
        } else {
            Keep::Nothing
        };
    }
    if reading.has(Class::Past, 0, count) {
        Keep::Episode
    } else {
        Keep::Record
    }
}

/// Signals that count, strongest first, then the kinds of fact, then what was held back and why.
fn reasons(
    reading: &Reading<'_>,
    judged: &[(Signal, Finding)],
    overflow: bool,
    of_kind: &[Found],
    tables: &Tables,
) -> Vec<Reason> {
    let mut signals = Vec::new();
    if overflow {
        signals.push(Reason {
            signal: "doubt-many-signals".to_owned(),
            matched: String::new(),
            weight: THRESHOLD_OTHER,
        });
    }
    let mut traps: Vec<Reason> = Vec::new();
    for (signal, finding) in judged {
        let (weight, trap) = match finding.outcome {
            Outcome::Free => (signal.weight, None),
            Outcome::Doubt(trap) => (signal.weight, Some(trap)),
            Outcome::Loose(trap) => (signal.weight * LOOSE_SHARE, Some(trap)),
            Outcome::Held(trap) => (0.0, Some(trap)),
        };
        signals.push(Reason {
            signal: signal.name.to_owned(),
            matched: reading.shown(signal.from, signal.to).to_owned(),
            weight: quantised(weight),
        });
        if let Some(trap) = trap {
            let reason = Reason {
                signal: trap.name.to_owned(),
                matched: reading.shown(trap.from, trap.to).to_owned(),
                weight: 0.0,
            };
            if !traps.contains(&reason) {
                traps.push(reason);
            }
        }
    }
    sort_by(&mut signals, |a, b| b.weight.total_cmp(&a.weight));
    signals.truncate(REASONS);
    signals.extend(of_kind.iter().filter_map(|found| {
        let kind = tables.kinds().kinds.get(usize::from(found.kind))?;
        Some(Reason {
            signal: format!("{}{}", kinds::REASON, kind.name),
            matched: reading.shown(found.from, found.to).to_owned(),
            weight: 0.0,
        })
    }));
    traps.extend(
        reading
            .idiomatic
            .iter()
            .filter(|h| h.meaning.class.is_signal())
            .map(|h| Reason {
                signal: "trap-idiom".to_owned(),
                matched: reading.shown(h.from, h.to).to_owned(),
                weight: 0.0,
            }),
    );
    traps.truncate(REASONS);
    signals.extend(traps);
    signals
}
