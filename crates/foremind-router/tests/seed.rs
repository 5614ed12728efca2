//! The labelled seed rows as a guard against drift: what the lexical stage catches, and how much ordinary
//! talk it lets into the profile. The floors stand below the measured figures; `examples/seed_report.rs`
//! prints those, train and test part apart.

#![allow(clippy::unwrap_used)]

use foremind_guard::{Guard, Verdict};
use foremind_router::Router;
use foremind_types::{Ambient, Tier};
use serde_json::Value;

const TOLD: Ambient = Ambient {
    now_ms: 1_795_946_400_000,
    utc_offset_min: 0,
    entropy: [0; 32],
};

/// Share of `profile` rows that reach the profile, and of rows that should not and do.
fn rates(rows: &str) -> (f64, f64) {
    let (router, guard) = (Router::new(), Guard::new());
    let (mut wanted, mut caught, mut unwanted, mut wrong) = (0, 0, 0, 0);
    for line in rows.lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        let text = row["text"].as_str().unwrap();
        let frame = router.frame(text);
        let profile = router.statements(text).into_iter().any(|statement| {
            matches!(guard.statement(statement), Ok(Verdict::Accept(guarded))
                if router.route_in(&guarded, frame, &TOLD).route.tier == Tier::Profile)
        });
        let also = |label: &str| {
            let also = row["also_ok"].as_array();
            also.is_some_and(|also| also.iter().any(|a| a == label))
        };
        if row["label"] == "profile" {
            if row["also_ok"].as_array().is_none_or(Vec::is_empty) {
                wanted += 1;
                caught += u32::from(profile);
            }
        } else if !also("profile") {
            unwanted += 1;
            wrong += u32::from(profile);
        }
    }
    (
        f64::from(caught) / f64::from(wanted),
        f64::from(wrong) / f64::from(unwanted),
    )
}

fn check(rows: &str, recall_floor: f64, false_ceiling: f64) {
    let (recall, wrong) = rates(rows);
    assert!(recall >= recall_floor, "recall {recall}");
    assert!(wrong <= false_ceiling, "false profile {wrong}");
}

#[test]
fn ordinary_talk_does_not_drown_the_profile() {
    check(
        include_str!("../../../tests/data/routing/seed/talk.jsonl"),
        0.6,
        0.01,
    );
}

#[test]
fn adversarial_rows_keep_their_floors() {
    check(
        include_str!("../../../tests/data/routing/seed/health.jsonl"),
        0.35,
        0.1,
    );
    check(
        include_str!("../../../tests/data/routing/seed/life.jsonl"),
        0.15,
        0.1,
    );
    check(
        include_str!("../../../tests/data/routing/seed/pairs.jsonl"),
        0.35,
        0.1,
    );
}
