//! The semantic stage: from the outputs of a trained head to a verdict on what the lexical stage left open.
//!
//! A head gives [`FEATURES`] logits: grade ([`Grade`] in its order, then "none"), domain ([`Domain`] in its order), time
//! to live (permanent, until changed, dated, session), subject (owner, dependant, other, none). `data/heads.tsv` holds what
//! turns them into probabilities and decisions. No logarithm and no library function is needed, so that every host
//! computes the same bits.

use core::fmt;

use foremind_types::{
    Ambient, Domain, Grade, HeadId, Judgement, Reason, Severity, Stage, Subject, Tier, Ttl, decimal,
};

use crate::consequences::Consequences;
use crate::data::{LineError, each_line, table_file};
use crate::kinds;
use crate::lifetime;
use crate::verdict::{priority, quantised};
use crate::{Keep, NGRAM_HEAD, Routing};
use foremind_types::data::File;

const GRADES: usize = 4;
const TTLS: usize = 4;
/// Place of what holds for hours among them.
const SESSION: usize = 3;
const SUBJECTS: [Subject; 4] = [
    Subject::Owner,
    Subject::Dependant,
    Subject::Other,
    Subject::None,
];
/// Domains of a head: those of [`Domain::ALL`] when the heads were trained.
const DOMAINS: usize = Domain::ALL.len();
/// Outputs of a head.
pub const FEATURES: usize = GRADES + DOMAINS + TTLS + SUBJECTS.len();

/// How long a statement counts that a head takes for dated and that names no date, in milliseconds: a year.
const GUESSED_MS: i64 = 365 * 86_400_000;

/// The data file.
pub(crate) const FILE: File = table_file!("heads.tsv");

/// Why a head's outputs or its file cannot be used.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum HeadError {
    /// The router has no calibration for this head: it is another version's.
    UnknownHead {
        /// The head.
        found: HeadId,
    },
    /// Not [`FEATURES`] finite numbers.
    BadFeatures {
        /// How many there were.
        found: usize,
    },
    /// A head's file is damaged or foreign.
    BadFile {
        /// What is wrong with it.
        what: &'static str,
    },
}

impl fmt::Display for HeadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownHead { found } => write!(f, "no calibration for the head {}", found.0),
            Self::BadFeatures { found } => {
                write!(f, "expected {FEATURES} finite numbers, found {found}")
            }
            Self::BadFile { what } => write!(f, "bad head file: {what}"),
        }
    }
}

impl core::error::Error for HeadError {}

/// How the outputs of one head are read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Calibration {
    head: String,
    /// Divides the logits.
    temperature: f32,
    /// Added to the two profile grades: the prior of ordinary talk against that of the training rows.
    shift: f32,
    /// From which probability a statement that is none of the profile waits for a judge, and is shown while there is room.
    asked: f32,
    /// From which probability a statement is of the profile: a false one costs 1, a missed one 1 / threshold - 1.
    threshold: f32,
    /// From which probability no judge is asked.
    certain: f32,
    /// Below which probability a statement that the lexical stage shows in doubt is not shown; 0 leaves those alone.
    doubt: f32,
    /// The same for what the lexical stage is sure of, unless a wrong answer could endanger.
    sure: f32,
}

/// The calibrations of all heads.
#[derive(Clone, Debug, Default)]
pub(crate) struct Heads(Vec<Calibration>);

impl Heads {
    /// Reads the table; lines that cannot be read are left out and returned.
    pub(crate) fn read(file: &'static str, text: &'static str) -> (Self, Vec<LineError>) {
        let mut rows = Vec::new();
        let errors = each_line(file, text, &mut |line| {
            let problem = "expected a head and seven numbers, separated by tabs";
            rows.push(calibration(line).ok_or(problem)?);
            Ok(())
        });
        (Self(rows), errors)
    }

    /// Whether there is a calibration for a head.
    pub(crate) fn knows(&self, head: &HeadId) -> bool {
        self.0.iter().any(|c| c.head == head.0)
    }
}

fn calibration(line: &str) -> Option<Calibration> {
    let (head, numbers) = line.split_once('\t')?;
    let numbers: Vec<f32> = numbers
        .split('\t')
        .map(|number| decimal(number.trim()).map(|number| number as f32))
        .collect::<Option<_>>()?;
    let [temperature, shift, asked, threshold, certain, doubt, sure] = numbers[..] else {
        return None;
    };
    let ordered = temperature > 0.0
        && 0.0 <= sure
        && sure <= doubt
        && doubt <= threshold
        && 0.0 < asked
        && asked <= threshold
        && threshold <= certain
        && certain <= 1.0;
    ordered.then(|| Calibration {
        head: head.to_owned(),
        temperature,
        shift,
        asked,
        threshold,
        certain,
        doubt,
        sure,
    })
}

/// The verdict of a head on what the lexical stage says of a statement; another stage's routing comes back as it is.
///
/// What is shown stays shown, unless the head finds it all but impossible; the bar is higher for what words are sure of, and
/// what could endanger is not taken back from them. What is not shown answers questions about itself, also when the day that
/// it names is over: it has no end. What is unrouted is of the profile when the calibrated
/// probability of a modifier or circumstance reaches the threshold, and pending as well while it does not reach the certain one;
/// a little below the threshold it stays in the store and is pending, unless it holds for hours only. What is settled there keeps the
/// lexical stage's domain, times and attribute.
pub(crate) fn judge(
    lexical: Routing,
    head: &HeadId,
    features: &[f32],
    at: &Ambient,
    heads: &Heads,
    consequences: &Consequences,
) -> Result<Routing, HeadError> {
    let calibration = heads.0.iter().find(|c| c.head == head.0);
    let calibration = calibration.ok_or_else(|| HeadError::UnknownHead {
        found: head.clone(),
    })?;
    if features.len() != FEATURES || !features.iter().all(|x| x.is_finite()) {
        return Err(HeadError::BadFeatures {
            found: features.len(),
        });
    }
    // From which probability what the lexical stage shows stays shown.
    let least = match lexical.route.judgement {
        Judgement::Unrouted => None,
        Judgement::Pending => Some(calibration.doubt),
        Judgement::Settled if lexical.route.severity == Severity::Severe => Some(0.0),
        Judgement::Settled => Some(calibration.sure),
    };
    if lexical.route.stage != Stage::Lexical || least == Some(0.0) {
        return Ok(lexical);
    }
    let (grades, rest) = features.split_at(GRADES);
    let (domains, rest) = rest.split_at(DOMAINS);
    let (ttls, subjects) = rest.split_at(TTLS);
    let mut logits = [0.0; GRADES];
    for (logit, x) in logits.iter_mut().zip(grades) {
        *logit = x / calibration.temperature;
    }
    logits[0] += calibration.shift;
    logits[1] += calibration.shift;
    let [modifier, circumstance, ..] = softmax(logits);
    let score = quantised(modifier + circumstance);
    let reason = Reason {
        signal: format!("head-{}", head.0.split('/').next().unwrap_or_default()),
        matched: String::new(),
        weight: score,
    };

    let mut routing = lexical;
    if let Some(least) = least {
        if score < least {
            routing.route.stage = Stage::Semantic;
            routing.route.judgement = Judgement::Settled;
            routing.route.tier = Tier::Store;
            routing.route.grade = Grade::Informer;
            routing.route.severity = Severity::Mild;
            routing.route.ttl = ttl_in_store(routing.route.ttl);
            routing.route.priority = priority(Grade::Informer, Severity::Mild, score);
            routing.route.reasons.insert(0, reason);
        }
        return Ok(routing);
    }
    routing.route.stage = Stage::Semantic;
    routing.route.judgement = Judgement::Settled;
    routing.route.score = score;
    let domain = Domain::ALL[strongest(domains)];
    if score < calibration.threshold {
        routing.route.ttl = ttl_in_store(routing.route.ttl);
        if score >= calibration.asked && strongest(ttls) != SESSION {
            routing.keep = Keep::Record;
            routing.route.judgement = Judgement::Pending;
            routing.route.domain = domain;
            routing.route.priority = priority(Grade::Informer, Severity::Mild, score);
            routing.route.reasons.insert(0, reason);
        }
        return Ok(routing);
    }
    routing.keep = Keep::Record;
    routing.subject = SUBJECTS[strongest(subjects)];
    let row = consequences.of(domain);
    // The n-gram head's other outputs are rough: what it doubts outranks nothing.
    let rough = head.0 == NGRAM_HEAD && score < calibration.certain;
    let grade = if modifier >= circumstance && !rough {
        Grade::Modifier
    } else {
        Grade::Circumstance
    };
    let severity = match grade {
        Grade::Modifier => row.map_or(Severity::Moderate, |row| row.severity),
        _ => Severity::Mild,
    };
    let route = &mut routing.route;
    route.grade = grade;
    route.tier = Tier::Profile;
    route.severity = severity;
    route.priority = priority(grade, severity, score);
    route.domain = domain;
    // Kinds of fact that the words betray say more than a domain does.
    let known = route
        .reasons
        .iter()
        .any(|reason| reason.signal.starts_with(kinds::REASON));
    if !known {
        route.affects = row.map(|row| row.affects.clone()).unwrap_or_default();
    }
    // A date that the statement names was read already; a head can tell the kind only. A plaster, a pregnancy or a hearing is
    // over in a year; what could endanger does not end by a guess.
    if route.ttl.until_ms().is_none() {
        route.ttl = match strongest(ttls) {
            0 => Ttl::Permanent,
            2 if severity != Severity::Severe => Ttl::Dated {
                until_ms: at.now_ms.saturating_add(GUESSED_MS),
            },
            SESSION => lifetime::session(at),
            _ => Ttl::UntilChanged,
        };
    }
    route.reasons.insert(0, reason);
    if score < calibration.certain {
        route.judgement = Judgement::Pending;
    }
    Ok(routing)
}

/// What happened today does not end with the day, but "for two weeks" does.
fn ttl_in_store(ttl: Ttl) -> Ttl {
    match ttl {
        Ttl::Dated { .. } => ttl,
        _ => Ttl::UntilChanged,
    }
}

/// Place of the largest number, the first among equals.
fn strongest(logits: &[f32]) -> usize {
    let mut best = 0;
    for (at, x) in logits.iter().enumerate() {
        if *x > logits[best] {
            best = at;
        }
    }
    best
}

fn softmax(logits: [f32; GRADES]) -> [f32; GRADES] {
    let largest = logits.iter().fold(f32::MIN, |most, x| most.max(*x));
    let powers = logits.map(|x| exp(x - largest));
    let sum = powers[0] + powers[1] + powers[2] + powers[3];
    powers.map(|x| x / sum)
}

/// e^x for x of at most 0, within 2e-6, and e^-20 for all below: a series at x / 16, squared four times. Only sums and
/// products in a fixed order, unlike the library's.
fn exp(x: f32) -> f32 {
    let x = x.max(-20.0) / 16.0;
    let series =
        1.0 + x * (1.0 + x * (1.0 / 2.0 + x * (1.0 / 6.0 + x * (1.0 / 24.0 + x * (1.0 / 120.0)))));
    (0..4).fold(series, |power, _| power * power)
}

#[cfg(test)]
mod tests {
    use foremind_guard::{Guard, Verdict};

    use super::*;
    use crate::{Router, consequences};

    const NOON: Ambient = Ambient {
        now_ms: 1_795_953_600_000,
        utc_offset_min: 0,
        entropy: [0; 32],
    };

    fn lexical(text: &str) -> Routing {
        match Guard::new().statement(text) {
            Ok(Verdict::Accept(text)) => Router::new().route(&text, &NOON),
            other => panic!("{other:?}"),
        }
    }

    /// Logits with some of them raised.
    fn logits(raised: &[(usize, f32)]) -> Vec<f32> {
        let mut features = vec![0.0; FEATURES];
        for (at, x) in raised {
            features[*at] = *x;
        }
        features
    }

    fn judged(text: &str, features: &[f32]) -> Result<Routing, HeadError> {
        let (heads, errors) = Heads::read(
            "test",
            "plain\t1\t0\t0.1\t0.2\t0.6\t0.05\t0.01\nnever\t1\t0\t0.1\t0.2\t0.6\t0\t0",
        );
        assert_eq!(errors, []);
        let (table, _) = Consequences::read(consequences::FILE.name, consequences::FILE.text());
        let head = HeadId("plain".to_owned());
        judge(lexical(text), &head, features, &NOON, &heads, &table)
    }

    const BANISTER: &str = "our banister is older than the street";

    fn domain_at(domain: Domain) -> usize {
        GRADES + Domain::ALL.iter().position(|d| *d == domain).unwrap()
    }

    #[test]
    fn exp_is_that_of_the_library() {
        for step in 0..8_000 {
            let x = -f64::from(step) / 100.0;
            let (ours, theirs) = (f64::from(exp(x as f32)), x.exp());
            assert!((ours - theirs).abs() < 2e-6, "{x}: {ours} {theirs}");
        }
        assert_eq!(exp(0.0), 1.0);
    }

    #[test]
    fn a_probable_modifier_is_shown_and_settled() {
        // (e^4 + 1) / (e^4 + 3): the two grades of the profile among four.
        let home = domain_at(Domain::Home);
        let routing = judged(BANISTER, &logits(&[(1, 4.0), (home, 1.0)])).unwrap();
        let route = &routing.route;
        assert_eq!(
            (route.tier, route.grade),
            (Tier::Profile, Grade::Circumstance)
        );
        assert_eq!(
            (route.stage, route.judgement),
            (Stage::Semantic, Judgement::Settled)
        );
        assert_eq!((route.domain, routing.keep), (Domain::Home, Keep::Record));
        assert!((route.score - 0.9653).abs() < 1e-4, "{}", route.score);
        assert_eq!(route.reasons[0].signal, "head-plain");
    }

    #[test]
    fn doubt_is_shown_and_waits_for_a_judge() {
        // All alike: half of the weight lies on the two grades of the profile.
        let route = judged(BANISTER, &logits(&[])).unwrap().route;
        assert_eq!(
            (route.tier, route.judgement),
            (Tier::Profile, Judgement::Pending)
        );
        assert!((route.score - 0.5).abs() < 1e-4);
    }

    #[test]
    fn the_improbable_stays_in_the_store_and_is_settled() {
        let route = judged(BANISTER, &logits(&[(2, 5.0)])).unwrap().route;
        assert_eq!((route.tier, route.grade), (Tier::Store, Grade::Informer));
        assert_eq!(
            (route.stage, route.judgement),
            (Stage::Semantic, Judgement::Settled)
        );
    }

    #[test]
    fn what_is_a_little_less_probable_waits_in_the_store() {
        // 2 / (2 + 1 + e^2.5) is 0.13: between the two thresholds of 0.1 and 0.2.
        let home = domain_at(Domain::Home);
        let routing = judged(BANISTER, &logits(&[(2, 2.5), (home, 1.0)])).unwrap();
        let route = &routing.route;
        assert_eq!(
            (route.tier, route.grade, route.judgement),
            (Tier::Store, Grade::Informer, Judgement::Pending)
        );
        assert_eq!((routing.keep, route.domain), (Keep::Record, Domain::Home));
        // What is over in hours is not worth a place.
        let ttls = GRADES + DOMAINS;
        let route = judged(BANISTER, &logits(&[(2, 2.5), (ttls + SESSION, 1.0)]))
            .unwrap()
            .route;
        assert_eq!(
            (route.tier, route.judgement),
            (Tier::Store, Judgement::Settled)
        );
    }

    #[test]
    fn what_could_endanger_stays_as_the_lexical_stage_decided() {
        let text = "I'm allergic to tree nuts";
        let before = lexical(text);
        assert_eq!(
            (before.route.tier, before.route.severity),
            (Tier::Profile, Severity::Severe)
        );
        assert_eq!(judged(text, &logits(&[(3, 9.0)])).unwrap(), before);
    }

    #[test]
    fn what_the_lexical_stage_is_sure_of_needs_more_to_be_taken_back() {
        let text = "I wear hearing aids in both ears";
        let before = lexical(text);
        assert_eq!(
            (before.route.tier, before.route.judgement),
            (Tier::Profile, Judgement::Settled),
            "{before:?}"
        );
        assert_ne!(before.route.severity, Severity::Severe);
        // 2 / (2 + 1 + e^4) is 0.03: enough to take back a doubt, not this.
        assert_eq!(judged(text, &logits(&[(2, 4.0)])).unwrap(), before);
        let route = judged(text, &logits(&[(2, 9.0)])).unwrap().route;
        assert_eq!(
            (route.tier, route.stage, route.ttl),
            (Tier::Store, Stage::Semantic, Ttl::UntilChanged)
        );
    }

    #[test]
    fn what_is_told_of_a_day_does_not_end_with_it() {
        let text = "I saw the otters at the weir today";
        assert!(lexical(text).route.ttl.until_ms().is_some());
        let route = judged(text, &logits(&[(2, 5.0)])).unwrap().route;
        assert_eq!((route.tier, route.ttl), (Tier::Store, Ttl::UntilChanged));
    }

    #[test]
    fn an_end_that_is_named_stays() {
        let text = "For the next two weeks I sit in the Ghent building";
        let ends = lexical(text).route.ttl;
        assert!(matches!(ends, Ttl::Dated { .. }));
        let route = judged(text, &logits(&[(2, 5.0)])).unwrap().route;
        assert_eq!((route.tier, route.ttl), (Tier::Store, ends));
    }

    #[test]
    fn another_stage_is_not_judged_again() {
        let mut before = lexical(BANISTER);
        before.route.stage = Stage::Owner;
        let (heads, _) = Heads::read("test", "plain\t1\t0\t0.1\t0.2\t0.6\t0.05\t0.01");
        let (table, _) = Consequences::read(consequences::FILE.name, consequences::FILE.text());
        let head = HeadId("plain".to_owned());
        let after = judge(
            before.clone(),
            &head,
            &logits(&[(1, 9.0)]),
            &NOON,
            &heads,
            &table,
        );
        assert_eq!(after, Ok(before));
    }

    #[test]
    fn what_is_shown_in_doubt_stays_shown_unless_the_head_rules_it_out() {
        let text = "My boyfriend is allergic to shellfish.";
        let before = lexical(text);
        assert_eq!(before.route.judgement, Judgement::Pending, "{before:?}");
        // Half, and e^-9 beside 3.
        assert_eq!(judged(text, &logits(&[])).unwrap(), before);
        let ruled_out = judged(text, &logits(&[(2, 9.0)])).unwrap().route;
        assert_eq!(
            (ruled_out.tier, ruled_out.judgement, ruled_out.stage),
            (Tier::Store, Judgement::Settled, Stage::Semantic)
        );
        assert_eq!(ruled_out.reasons[0].signal, "head-plain");
        assert_eq!(ruled_out.reasons.len(), before.route.reasons.len() + 1);
    }

    #[test]
    fn times_to_live_follow_the_head_unless_the_statement_names_an_end() {
        let ttl = GRADES + DOMAINS;
        let kind = |text: &str, at: usize| {
            judged(text, &logits(&[(1, 4.0), (ttl + at, 2.0)]))
                .unwrap()
                .route
                .ttl
        };
        assert_eq!(kind(BANISTER, 0), Ttl::Permanent);
        assert_eq!(kind(BANISTER, 1), Ttl::UntilChanged);
        let year = NOON.now_ms + 365 * 86_400_000;
        assert_eq!(kind(BANISTER, 2), Ttl::Dated { until_ms: year });
        assert!(matches!(kind(BANISTER, 3), Ttl::Session { until_ms } if until_ms > NOON.now_ms));
        let dated = "the scaffolding stays up for six weeks";
        assert!(matches!(kind(dated, 0), Ttl::Dated { .. }));
    }

    #[test]
    fn foreign_heads_and_broken_features_are_refused() {
        for features in [vec![], vec![0.0; FEATURES - 1], vec![f32::NAN; FEATURES]] {
            let found = features.len();
            let refused = judged(BANISTER, &features);
            assert_eq!(refused, Err(HeadError::BadFeatures { found }));
        }
        let (table, _) = Consequences::read(consequences::FILE.name, consequences::FILE.text());
        let head = HeadId("other/9".to_owned());
        let refused = judge(
            lexical(BANISTER),
            &head,
            &logits(&[]),
            &NOON,
            &Heads::default(),
            &table,
        );
        assert_eq!(refused, Err(HeadError::UnknownHead { found: head }));
    }

    #[test]
    fn every_line_of_the_data_file_is_read() {
        assert_eq!(Heads::read(FILE.name, FILE.text()).1, []);
        for line in [
            "a",
            "a\t1\t0\t0.5\t0.6\t0",
            "a\t0\t0\t0.1\t0.2\t0.6\t0\t0",
            "a\t1\t0\t0.7\t0.6\t0\t0",
            "a\t1\t0\t0.1\t0.2\t0.6\t0.3\t0",
            "a\t1\t0\t0.1\t0.2\t0.6\t0.1\t0.2",
            "a\t1\tx\t0.1\t0.2\t0.6\t0\t0",
        ] {
            assert_eq!(Heads::read("t", line).1.len(), 1, "{line}");
        }
    }
}
