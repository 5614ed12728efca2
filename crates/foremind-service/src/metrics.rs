//! Counters in the text format of Prometheus (version 0.0.4). Labels are names of routes and codes: nothing that a
//! caller chose. Written by hand, since a counter and its line are all there is to it.

use std::collections::BTreeMap;
use std::fmt::Write;

/// What one instance has counted since it began.
#[derive(Clone, Debug, Default)]
pub(crate) struct Metrics {
    requests: BTreeMap<(&'static str, u16), u64>,
    problems: BTreeMap<&'static str, u64>,
    fallbacks: BTreeMap<String, u64>,
    ignored: BTreeMap<&'static str, u64>,
}

impl Metrics {
    pub(crate) fn request(&mut self, route: &'static str, status: u16) {
        *self.requests.entry((route, status)).or_default() += 1;
    }

    pub(crate) fn problem(&mut self, code: &'static str) {
        *self.problems.entry(code).or_default() += 1;
    }

    /// `reason` is a code, never a text.
    pub(crate) fn fallback(&mut self, reason: &str) {
        *self.fallbacks.entry(reason.to_owned()).or_default() += 1;
    }

    pub(crate) fn ignored(&mut self, why: &'static str) {
        *self.ignored.entry(why).or_default() += 1;
    }

    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        let mut family = |name: &str, help: &str, rows: Vec<(String, u64)>| {
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} counter");
            for (labels, count) in rows {
                let _ = writeln!(text, "{name}{{{labels}}} {count}");
            }
        };
        let requests = self.requests.iter();
        family(
            "foremind_requests_total",
            "Requests answered, by route and status.",
            requests
                .map(|((route, status), count)| {
                    (format!("route=\"{route}\",status=\"{status}\""), *count)
                })
                .collect(),
        );
        let problems = self.problems.iter();
        family(
            "foremind_problems_total",
            "Problems answered, by code.",
            problems
                .map(|(code, count)| (format!("code=\"{code}\""), *count))
                .collect(),
        );
        let fallbacks = self.fallbacks.iter();
        family(
            "foremind_prompt_fallbacks_total",
            "Prompts that are less than was asked for, by reason.",
            fallbacks
                .map(|(reason, count)| (format!("reason=\"{reason}\""), *count))
                .collect(),
        );
        let ignored = self.ignored.iter();
        family(
            "foremind_turns_ignored_total",
            "Turns that were not looked at, by reason.",
            ignored
                .map(|(why, count)| (format!("why=\"{why}\""), *count))
                .collect(),
        );
        text
    }
}
