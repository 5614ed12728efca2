//! Labelled statements: what share of those that belong to the profile gets there, and of those that do not.

use std::collections::BTreeMap;

use foremind_guard::{Guard, Verdict};
use foremind_router::{Keep, Router};
use foremind_types::{Ambient, Tier, Ttl};
use serde_json::{Map, Value, json};

use crate::arguments::Arguments;
use crate::input::{self, Problem, Row};
use crate::rates::Rate;
use crate::stages::Stages;

/// 2026-11-29, noon: dates in rows are read against it.
pub(crate) const TOLD: Ambient = Ambient {
    now_ms: 1_795_953_600_000,
    utc_offset_min: 0,
    entropy: [0; 32],
};

/// A row's labels: two for the few that may be read either way.
struct Labels<'r> {
    label: &'r str,
    also_ok: Vec<&'r str>,
}

impl<'r> Labels<'r> {
    fn of(row: &'r Row) -> Result<Self, Problem> {
        let known = |label: &str| matches!(label, "profile" | "store" | "none");
        let label = row.text("label")?;
        let also_ok = row.list("also_ok");
        match core::iter::once(&label).chain(&also_ok).find(|l| !known(l)) {
            Some(unknown) => Err(row.problem(&format!("unknown label `{unknown}`"))),
            None => Ok(Self { label, also_ok }),
        }
    }

    fn is_profile(&self) -> bool {
        self.label == "profile"
    }

    fn only_profile(&self) -> bool {
        self.is_profile() && self.also_ok.iter().all(|label| *label == "profile")
    }

    fn never_profile(&self) -> bool {
        !self.is_profile() && !self.also_ok.contains(&"profile")
    }

    /// Whether the route agrees with one of the labels.
    fn agrees(&self, profile: bool) -> bool {
        if profile {
            !self.never_profile()
        } else {
            !self.only_profile()
        }
    }
}

/// What the statements of a text became, taken together.
#[derive(Default)]
pub(crate) struct Routed {
    /// One of them is a modifier or circumstance.
    pub(crate) profile: bool,
    /// Time to live of the first profile record, else of the first record.
    pub(crate) ttl: Option<&'static str>,
    pub(crate) reasons: Vec<String>,
}

/// Routes a text as a turn of its own.
pub(crate) fn route(stages: &Stages, router: &Router, guard: &Guard, text: &str) -> Routed {
    let frame = router.frame(text);
    let mut routed = Routed::default();
    for statement in router.statements(text) {
        let Ok(Verdict::Accept(guarded)) = guard.statement(statement) else {
            continue;
        };
        let routing = stages.route(router, &guarded, frame, &TOLD);
        let profile = routing.route.tier == Tier::Profile;
        if routing.keep != Keep::Nothing && (routed.ttl.is_none() || profile && !routed.profile) {
            routed.ttl = Some(ttl_name(routing.route.ttl));
        }
        routed.profile |= profile;
        let shown = routing.route.reasons.iter();
        routed
            .reasons
            .extend(shown.map(|r| format!("{}[{}] {}", r.signal, r.matched, r.weight)));
    }
    routed
}

fn ttl_name(ttl: Ttl) -> &'static str {
    match ttl {
        Ttl::Permanent => "permanent",
        Ttl::UntilChanged => "until-changed",
        Ttl::Dated { .. } => "dated",
        Ttl::Session { .. } => "session",
    }
}

/// Recall and false profile of one part of the rows.
#[derive(Default)]
struct Pair {
    recall: Rate,
    wrong: Rate,
    rows: u32,
}

impl Pair {
    fn add(&mut self, labels: &Labels<'_>, profile: bool) {
        self.rows += 1;
        if labels.only_profile() {
            self.recall.add(profile);
        } else if labels.never_profile() {
            self.wrong.add(profile);
        }
    }

    fn json(&self) -> Value {
        json!({
            "profile_recall": self.recall.share(),
            "false_profile": self.wrong.share(),
            "rows": self.rows,
            "ci95": { "profile_recall": self.recall.ci95(), "false_profile": self.wrong.ci95() },
        })
    }
}

/// The figures of `eval routing`.
///
/// # Errors
/// [`Problem::Input`].
pub(crate) fn measure(arguments: &Arguments) -> Result<Value, Problem> {
    let rows = input::rows(&arguments.rows)?;
    let guard = Guard::new();
    let stages = Stages::read(arguments)?;
    let router = stages.router()?;
    let mut all = Pair::default();
    let (mut lenient_recall, mut lenient_wrong) = (Rate::default(), Rate::default());
    let mut ttl = Rate::default();
    let mut by_lang: BTreeMap<String, Pair> = BTreeMap::new();
    let mut by_trap: BTreeMap<String, Rate> = BTreeMap::new();
    for row in &rows {
        let text = row.text("text")?;
        let labels = Labels::of(row)?;
        let routed = route(&stages, &router, &guard, text);
        all.add(&labels, routed.profile);
        if labels.is_profile() {
            lenient_recall.add(labels.agrees(routed.profile));
        } else {
            lenient_wrong.add(!labels.agrees(routed.profile));
        }
        let lang = row.optional("lang").unwrap_or("en").to_owned();
        by_lang
            .entry(lang)
            .or_default()
            .add(&labels, routed.profile);
        if let Some(trap) = row.optional("trap") {
            let right = labels.agrees(routed.profile);
            by_trap.entry(trap.to_owned()).or_default().add(right);
        }
        if let (Some(wanted), Some(given)) = (row.optional("ttl"), routed.ttl) {
            ttl.add(wanted == given);
        }
        if arguments.explain && !labels.agrees(routed.profile) {
            let mark = if routed.profile { "FALSE" } else { "MISSED" };
            eprintln!(
                "{mark} {} [{}] {text}\n    {}",
                row.id("id").unwrap_or_default(),
                row.optional("trap").unwrap_or("-"),
                routed.reasons.join("; ")
            );
        }
    }
    let languages: Map<String, Value> =
        by_lang.iter().map(|(l, p)| (l.clone(), p.json())).collect();
    let traps: Map<String, Value> = by_trap
        .iter()
        .map(|(trap, rate)| {
            let right = json!({ "right": rate.share(), "rows": rate.rows, "ci95": rate.ci95() });
            (trap.clone(), right)
        })
        .collect();
    stages.save()?;
    Ok(json!({
        "rows": rows.len(),
        "stage": stages.name(),
        "profile_recall": all.recall.share(),
        "false_profile": all.wrong.share(),
        "lenient_profile_recall": lenient_recall.share(),
        "lenient_false_profile": lenient_wrong.share(),
        "by_lang": languages,
        "by_trap": traps,
        "ttl_accuracy": ttl.share(),
        "ci95": {
            "profile_recall": all.recall.ci95(),
            "false_profile": all.wrong.ci95(),
            "lenient_profile_recall": lenient_recall.ci95(),
            "lenient_false_profile": lenient_wrong.ci95(),
            "ttl_accuracy": ttl.ci95(),
        },
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_with_two_labels_is_wrong_only_in_the_third() {
        let labels = |label, also_ok: &[&'static str]| Labels {
            label,
            also_ok: also_ok.to_vec(),
        };
        assert!(labels("profile", &["store"]).agrees(false));
        assert!(!labels("profile", &[]).agrees(false));
        assert!(labels("store", &["profile"]).agrees(true));
        assert!(!labels("store", &["none"]).agrees(true));
        let mut pair = Pair::default();
        pair.add(&labels("profile", &["store"]), true);
        assert_eq!(pair.recall.rows + pair.wrong.rows, 0, "counts neither way");
    }

    #[test]
    fn any_statement_puts_the_row_into_the_profile() {
        let (router, guard) = (Router::new(), Guard::new());
        let text = "We watched a film. I'm allergic to peanuts. It was long.";
        let routed = route(&Stages::words(), &router, &guard, text);
        assert!(routed.profile);
        assert_eq!(routed.ttl, Some("permanent"), "{:?}", routed.reasons);
        assert!(!route(&Stages::words(), &router, &guard, "We watched a film.").profile);
    }
}
