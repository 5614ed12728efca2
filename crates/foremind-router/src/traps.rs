//! What holds a signal back: who is spoken about, and whether it is said to be so.
//!
//! A trap *holds* a signal (it does not count) or makes it *doubtful* (it counts, and the verdict waits for
//! a judge). Every look-back is a window of at most [`WINDOW`] words, so the cost is linear in the signals.

use foremind_types::{Domain, Subject};

use crate::lexicon::{Class, Hit};
use crate::reading::{Reading, Sentence};
use crate::signals::{Kind, Signal};

/// Words looked at on either side of a signal.
pub(crate) const WINDOW: usize = 40;

/// What the traps say of a signal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Finding {
    pub(crate) outcome: Outcome,
    pub(crate) subject: Subject,
}

/// Whether a signal counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Outcome {
    /// Counts.
    Free,
    /// Counts, but a judge should look.
    Doubt(Trap),
    /// Counts half: tied to the owner only by standing in the same sentence.
    Loose(Trap),
    /// Does not count.
    Held(Trap),
}

/// A trap and the words that sprang it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Trap {
    pub(crate) name: &'static str,
    pub(crate) from: usize,
    pub(crate) to: usize,
}

impl Trap {
    fn at(name: &'static str, hit: &Hit) -> Self {
        Self {
            name,
            from: hit.from,
            to: hit.to,
        }
    }

    fn bare(name: &'static str) -> Self {
        Self {
            name,
            from: 0,
            to: 0,
        }
    }
}

/// How a signal is tied to somebody.
#[derive(Clone, Copy, Debug)]
struct Tie {
    subject: Subject,
    /// The word that names the subject.
    at: Option<usize>,
    strength: Strength,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Strength {
    /// "my asthma": possessed.
    Possessed,
    /// "I'm diabetic", "I take warfarin".
    Bound,
    /// A headline: "Coeliac here."
    Fragment,
    /// In the same sentence, no more.
    Loose,
    /// A topic stands between.
    Topic(Trap),
}

/// Asks every trap about one signal. `others` are all signals of the statement.
pub(crate) fn judge(reading: &Reading<'_>, signal: &Signal, others: &[Signal]) -> Finding {
    let sentence = reading.sentence(signal.from);
    let low = sentence.from.max(signal.from.saturating_sub(WINDOW));
    let high = sentence.to.min(signal.to + WINDOW);
    let tie = tie(reading, signal, low, high);
    let subject = tie.subject;
    let outcome = held(reading, signal, sentence, low, high, tie).map_or_else(
        || doubt(reading, signal, others, low, high, tie),
        Outcome::Held,
    );
    Finding { outcome, subject }
}

/// The first trap that holds the signal.
fn held(
    reading: &Reading<'_>,
    signal: &Signal,
    sentence: Sentence,
    low: usize,
    high: usize,
    tie: Tie,
) -> Option<Trap> {
    let strong = matches!(tie.strength, Strength::Possessed | Strength::Bound);
    let before = |class| reading.first(class, low, signal.from);
    // Words about the whole statement may stand in an earlier sentence of it.
    let back = signal.from.saturating_sub(WINDOW);

    if reading.words.word(signal.from).quoted && !reading.has(Class::OwnQuote, low, signal.from) {
        return Some(Trap::bare("trap-quotation"));
    }
    if let Some(hit) = reading.first(Class::Retract, back, signal.from) {
        return Some(Trap::at("trap-retracted", hit));
    }
    if let Some(hit) = reading.first(Class::Fiction, sentence.from.max(back), signal.from) {
        return Some(Trap::at("trap-fiction", hit));
    }
    if let Some(hit) = before(Class::Hypothetical) {
        return Some(Trap::at("trap-hypothetical", hit));
    }
    if let Some(hit) = before(Class::Quote)
        && tie.strength != Strength::Possessed
    {
        return Some(Trap::at("trap-wording", hit));
    }
    if let Some(hit) = reading.first(Class::Sarcasm, sentence.from, sentence.from + 4) {
        return Some(Trap::at("trap-sarcasm", hit));
    }
    if signal.kind == Kind::Instruction {
        let starts = signal.from <= sentence.from + 6;
        return (!starts).then(|| Trap::bare("trap-unbound"));
    }
    if tie.subject == Subject::Other {
        let at = tie.at.unwrap_or(signal.from);
        return Some(Trap {
            name: "trap-other-person",
            from: at,
            to: at + 1,
        });
    }
    if signal.kind == Kind::Plain {
        let shown = reading.shown(signal.from, signal.to);
        let unspaced = !shown.starts_with(|c: char| {
            c < '\u{370}' || matches!(c, '我' | 'म' | 'ا' | 'أ' | 'ع' | 'ل')
        });
        let told = (sentence.from..signal.from).any(|w| {
            matches!(
                reading.words.folded(w),
                "我" | "私" | "僕" | "俺" | "저" | "제" | "나" | "내"
            )
        });
        let unspaced = unspaced && !told;
        return (sentence.question && unspaced).then(|| Trap::bare("trap-question"));
    }
    if sentence.question && !states_fact(reading, signal, sentence, tie) {
        return Some(Trap::bare("trap-question"));
    }
    if signal.kind == Kind::State
        && let Some(trap) = negated(reading, signal)
    {
        return Some(trap);
    }
    if signal.kind == Kind::State
        && let Some(hit) = reading.first(Class::Resolved, low, high)
        && !still_counts(reading, signal, low, high)
    {
        return Some(Trap::at("trap-resolved", hit));
    }
    if let Strength::Topic(trap) = tie.strength {
        return Some(trap);
    }
    if let Some(trap) = topic_after(reading, signal, tie) {
        return Some(trap);
    }
    if !strong {
        let request = before(Class::Request).or_else(|| before(Class::Plan));
        if let Some(hit) = request {
            return Some(Trap::at("trap-request", hit));
        }
        if let Some(hit) = reading.first(Class::About, low, high) {
            return Some(Trap::at("trap-topic", hit));
        }
    }
    let passing = signal.domain == Domain::Session && reading.has(Class::Past, low, high);
    if passing {
        return Some(Trap::bare("trap-past"));
    }
    None
}

fn doubt(
    reading: &Reading<'_>,
    signal: &Signal,
    others: &[Signal],
    low: usize,
    high: usize,
    tie: Tie,
) -> Outcome {
    if reading.words.word(signal.from).quoted {
        return Outcome::Doubt(Trap::bare("trap-quotation"));
    }
    if signal.kind == Kind::Instruction {
        return Outcome::Free;
    }
    // A fiction announced in an earlier sentence may go on here, or the owner speaks again.
    let back = signal.from.saturating_sub(WINDOW);
    let announced = reading.first(Class::Fiction, back, signal.from);
    if let Some(hit) = announced.or_else(|| reading.first(Class::Fiction, signal.to, high)) {
        return Outcome::Doubt(Trap::at("trap-fiction", hit));
    }
    if signal.kind == Kind::State
        && let Some(hit) = reading.first(Class::Resolved, low, high)
    {
        return Outcome::Doubt(Trap::at("trap-resolved", hit));
    }
    match tie.strength {
        Strength::Loose => return Outcome::Loose(Trap::bare("trap-unbound")),
        Strength::Fragment if others.len() < 2 => {
            return Outcome::Doubt(Trap::bare("trap-no-subject"));
        }
        _ => {}
    }
    if tie.subject == Subject::Dependant {
        return Outcome::Doubt(Trap::bare("in-care"));
    }
    if signal.domain == Domain::Procedure
        && let Some(hit) = reading.first(Class::Past, low, high)
    {
        return Outcome::Doubt(Trap::at("past-event", hit));
    }
    Outcome::Free
}

/// Who a signal is about: the nearest person before it, else after it.
fn tie(reading: &Reading<'_>, signal: &Signal, low: usize, high: usize) -> Tie {
    if signal.kind == Kind::Care {
        return Tie {
            subject: Subject::Dependant,
            at: Some(signal.from),
            strength: Strength::Possessed,
        };
    }
    // "won't let me": the signal names its own subject.
    let own = (signal.from..signal.to)
        .find(|w| matches!(reading.words.folded(*w), "me" | "us" | "my" | "our"));
    if let Some(at) = own.filter(|_| signal.kind != Kind::Plain) {
        return Tie {
            subject: Subject::Owner,
            at: Some(at),
            strength: Strength::Bound,
        };
    }
    let is_person = |h: &&Hit| person(h.meaning.class) && !generic(reading, h, high);
    let nearest = reading
        .within(low, signal.from)
        .iter()
        .rev()
        .find(is_person);
    if let Some(hit) = nearest {
        let hit = clause_subject(reading, hit, low, signal);
        return Tie {
            subject: whose(reading, hit),
            at: Some(hit.from),
            strength: strength(reading, signal, hit),
        };
    }
    if signal.kind == Kind::Plain {
        return Tie {
            subject: Subject::Owner,
            at: None,
            strength: Strength::Bound,
        };
    }
    let after = reading.within(signal.to, high);
    let owner = after.iter().find(|h| h.meaning.class == Class::Owner);
    let later = after.iter().find(is_person);
    let later = match (owner, later) {
        (Some(owner), Some(other)) if impersonal(reading, other) => Some(owner),
        (_, later) => later,
    };
    if let Some(hit) = later {
        let subject = whose(reading, hit);
        let near = hit.from < signal.to + 8;
        let topic = reading.first(Class::About, signal.from, hit.from);
        let strength = match topic {
            Some(topic) => Strength::Topic(Trap::at("trap-topic", topic)),
            None if (low + 1..signal.from).any(|w| reading.is(Class::Bind, w))
                && signal.kind == Kind::State =>
            {
                Strength::Topic(Trap::bare("trap-other-subject"))
            }
            None if near && signal.from <= low + 4 => Strength::Bound,
            None => Strength::Loose,
        };
        return Tie {
            subject,
            at: Some(hit.from),
            strength,
        };
    }
    let rule = matches!(signal.name, "negation-noun" | "order");
    if rule
        && high - low <= 30
        && !reading.has(Class::About, low, high)
        && !reading.has(Class::Request, low, high)
    {
        return Tie {
            subject: Subject::Owner,
            at: None,
            strength: Strength::Fragment,
        };
    }
    // A headline has no verb and no article before its point: "Type 1 diabetic, Leeds".
    let short = high - low <= 16;
    let headline = signal.from <= low + 3
        && signal.domain != Domain::Legal
        && !matches!(signal.name, "legal-word" | "obligation" | "cannot")
        && !(low..signal.from).any(|w| {
            reading.is(Class::Bind, w)
                || matches!(
                    reading.words.folded(w),
                    "the" | "a" | "an" | "this" | "that" | "of" | "feels" | "put" | "tried"
                )
        });
    Tie {
        subject: Subject::Owner,
        at: None,
        strength: if short && headline {
            Strength::Fragment
        } else {
            Strength::Topic(Trap::bare("trap-no-subject"))
        },
    }
}

/// "you" that means people like the owner: "when you're on lithium like me".
fn generic(reading: &Reading<'_>, hit: &Hit, high: usize) -> bool {
    matches!(reading.words.folded(hit.from), "you" | "you're" | "your")
        && (hit.to..high).any(|w| {
            matches!(
                reading.words.phrase(w, w + 2),
                "like me" | "like i" | "as i"
            )
        })
}

/// "they" and "you" without anybody in particular.
fn impersonal(reading: &Reading<'_>, hit: &Hit) -> bool {
    matches!(
        reading.words.folded(hit.from),
        "they" | "they've" | "they're" | "them" | "you" | "you're" | "it"
    )
}

/// The owner word nearest to a signal need not be the subject: "the man who cuts my hair is deaf",
/// "our sound engineer gets migraines".
fn clause_subject<'r>(
    reading: &'r Reading<'_>,
    nearest: &'r Hit,
    low: usize,
    signal: &Signal,
) -> &'r Hit {
    if nearest.meaning.class != Class::Owner {
        return nearest;
    }
    let word = reading.words.folded(nearest.from);
    let possessing = matches!(word, "my" | "our") && signal.from - nearest.to <= 2;
    if possessing {
        return nearest;
    }
    let subject_form = !matches!(word, "my" | "our" | "mine" | "us" | "me");
    let earlier = reading
        .within(low, nearest.from)
        .iter()
        .find(|h| person(h.meaning.class));
    let Some(first) = earlier.filter(|h| matches!(h.meaning.class, Class::Other)) else {
        return nearest;
    };
    // "a man who I know ... is", "a flatmate of mine": the person named first goes on being the subject.
    let relative = nearest.from - first.to <= 2;
    let same_clause = reading.clause_start(nearest.from, 12) <= first.from;
    let early = first.from <= low + 5 && !impersonal(reading, first);
    if early && same_clause && (relative || !subject_form) {
        first
    } else {
        nearest
    }
}

fn person(class: Class) -> bool {
    matches!(
        class,
        Class::Owner | Class::Dependant | Class::Pet | Class::Spouse | Class::Other | Class::Third
    )
}

/// Whether a person word means the owner, somebody in the owner's care, or somebody else.
fn whose(reading: &Reading<'_>, hit: &Hit) -> Subject {
    let back = hit.from.saturating_sub(WINDOW);
    let cared_for = reading.has(Class::Care, back, hit.to + WINDOW);
    let holder = reading
        .within(hit.from.saturating_sub(3), hit.from)
        .iter()
        .rev()
        .find(|h| person(h.meaning.class));
    let elsewhere = holder.is_some_and(|h| {
        matches!(h.meaning.class, Class::Other | Class::Third)
            && (reading.shown(h.from, h.to).ends_with("'s")
                || reading.shown(h.from, h.to).ends_with("’s")
                || matches!(
                    reading.words.folded(h.from),
                    "his" | "her" | "their" | "your"
                ))
    });
    match hit.meaning.class {
        Class::Owner => Subject::Owner,
        _ if cared_for => Subject::Dependant,
        Class::Dependant | Class::Pet | Class::Spouse if elsewhere => Subject::Other,
        // "study partner", "my cousin's boyfriend".
        Class::Spouse
            if hit.from == 0
                || !matches!(reading.words.folded(hit.from - 1), "my" | "our" | "the") =>
        {
            Subject::Other
        }
        Class::Dependant | Class::Pet | Class::Spouse => Subject::Dependant,
        Class::Third => reading
            .within(back, hit.from)
            .iter()
            .rev()
            .find(|h| {
                matches!(
                    h.meaning.class,
                    Class::Dependant | Class::Pet | Class::Spouse | Class::Other
                )
            })
            .map_or_else(
                // Nobody named: perhaps somebody in the owner's care, told of before.
                || {
                    if impersonal(reading, hit) {
                        Subject::Other
                    } else {
                        Subject::Dependant
                    }
                },
                |h| whose(reading, h),
            ),
        _ => Subject::Other,
    }
}

/// How firmly a signal is tied to the person word before it.
fn strength(reading: &Reading<'_>, signal: &Signal, person: &Hit) -> Strength {
    let between = person.to..signal.from;
    let possessive = matches!(reading.words.folded(person.from), "my" | "our");
    let verb = reading.has(Class::Bind, between.start, between.end);
    let topic = reading.has(Class::About, between.start, between.end);
    if possessive && between.len() <= 3 && !topic && !verb {
        return Strength::Possessed;
    }
    if let Some(topic) = reading.first(Class::About, between.start, between.end) {
        return Strength::Topic(Trap::at("trap-topic", topic));
    }
    let thing = person.to;
    if possessive
        && signal.kind == Kind::State
        && (signal.domain.is_health_or_food() || signal.domain == Domain::Religion)
        && reading.is(Class::Bind, thing + 1)
        && !BODY.contains(&reading.words.folded(thing))
    {
        return Strength::Topic(Trap {
            name: "trap-other-subject",
            from: thing,
            to: thing + 1,
        });
    }
    let asked = reading
        .first(Class::Request, person.from.saturating_sub(2), between.end)
        .or_else(|| reading.first(Class::Plan, person.from, between.end));
    if let Some(asked) = asked {
        return Strength::Topic(Trap::at("trap-request", asked));
    }
    if signal.kind != Kind::State && between.len() <= 8 {
        return Strength::Bound;
    }
    // The verb may be part of the signal: "we keep kosher".
    let bound =
        reading.has(Class::Bind, person.from, between.end) || reading.is(Class::Bind, signal.from);
    if bound && between.len() <= 8 {
        return Strength::Bound;
    }
    Strength::Loose
}

/// What of the owner may be the subject of a state of health.
const BODY: &[&str] = &[
    "body",
    "skin",
    "stomach",
    "gut",
    "heart",
    "knee",
    "knees",
    "back",
    "neck",
    "eye",
    "eyes",
    "ear",
    "ears",
    "hand",
    "hands",
    "wrist",
    "wrists",
    "foot",
    "feet",
    "ankle",
    "leg",
    "legs",
    "arm",
    "arms",
    "shoulder",
    "shoulders",
    "hip",
    "hips",
    "head",
    "throat",
    "lungs",
    "kidney",
    "kidneys",
    "liver",
    "brain",
    "blood",
    "immune",
    "bladder",
    "bowel",
    "spine",
    "teeth",
    "jaw",
    "nose",
    "hearing",
    "vision",
    "sight",
    "work",
    "job",
    "diet",
    "family",
    "household",
];

/// Words before a subject that make a question of it.
const INVERTED: &[&str] = &[
    "do", "does", "did", "can", "could", "should", "would", "will", "am", "is", "are", "was",
    "were", "if", "whether", "that", "must", "may", "have", "has", "how", "when",
];

/// Whether a question says something about the owner on its way: "... given that I'm diabetic?".
fn states_fact(reading: &Reading<'_>, signal: &Signal, sentence: Sentence, tie: Tie) -> bool {
    let Some(at) = tie.at.filter(|at| *at < signal.from) else {
        return false;
    };
    match tie.strength {
        Strength::Possessed => true,
        Strength::Bound => {
            let subject_form = !matches!(reading.words.folded(at), "me" | "us" | "my" | "our");
            let inverted = subject_form
                && at > sentence.from
                && INVERTED.contains(&reading.words.folded(at - 1));
            let given = at > sentence.from
                && matches!(
                    reading.words.folded(at - 1),
                    "that" | "since" | "because" | "as"
                )
                && reading.words.folded(at.saturating_sub(2)) != "know";
            !inverted || given
        }
        _ => false,
    }
}

/// "no allergies", "I'm not diabetic", "never had asthma".
fn negated(reading: &Reading<'_>, signal: &Signal) -> Option<Trap> {
    let start = reading.clause_start(signal.from, 4);
    let hit = reading
        .within(start, signal.from)
        .iter()
        .rev()
        .find(|h| h.meaning.class == Class::Negation)?;
    let lacking = matches!(
        signal.domain,
        Domain::Immigration | Domain::Licence | Domain::Finance
    ) && !matches!(
        reading.words.folded(signal.to),
        "worries" | "worry" | "problems" | "problem" | "issues" | "needed" | "required" | "trouble"
    ) && matches!(
        reading.words.folded(hit.from),
        "don't" | "without" | "haven't" | "can't" | "cannot" | "no"
    );
    (!lacking).then(|| Trap::at("trap-negated", hit))
}

/// Whether a resolved condition left something behind.
fn still_counts(reading: &Reading<'_>, signal: &Signal, low: usize, high: usize) -> bool {
    let lasting = reading
        .within(low, high)
        .iter()
        .any(|h| h.meaning.class == Class::Lasting && h.from != signal.from);
    // "but I still can't ...": a rule after the turn of the sentence.
    let turned = (low..high)
        .find(|at| matches!(reading.words.folded(*at), "but" | "though" | "although"))
        .is_some_and(|at| {
            reading.within(at, high).iter().any(|h| {
                matches!(
                    h.meaning.class,
                    Class::Negation | Class::Medication | Class::Medical
                )
            })
        });
    lasting
        || turned
        || reading.has(Class::Obligation, low, high)
        || (low..high).any(|at| reading.words.folded(at) == "still")
}

/// "vegan recipes", "visa process", "the NDA training": the signal only says what kind of thing.
fn topic_after(reading: &Reading<'_>, signal: &Signal, tie: Tie) -> Option<Trap> {
    if signal.kind != Kind::State || tie.strength == Strength::Possessed {
        return None;
    }
    let end = reading.clause_end(signal.to - 1, 1);
    reading
        .within(signal.to, end)
        .iter()
        .find(|h| matches!(h.meaning.class, Class::About))
        .map(|h| Trap::at("trap-topic", h))
}
