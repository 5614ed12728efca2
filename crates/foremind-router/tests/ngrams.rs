//! The n-gram head that is committed: it fits its size, is calibrated, and takes over what words alone leave open.

#![allow(clippy::unwrap_used)]

use foremind_guard::{Guard, Verdict};
use foremind_router::{NgramHead, Router, Routing};
use foremind_types::{Ambient, Judgement, Stage};

const FILE: &[u8] = include_bytes!("../data/ngrams.bin");
const TOLD: Ambient = Ambient {
    now_ms: 1_795_946_400_000,
    utc_offset_min: 0,
    entropy: [0; 32],
};

fn route(text: &str) -> Routing {
    let router = Router::new()
        .with_ngrams(NgramHead::read(FILE).unwrap())
        .unwrap();
    match Guard::new().statement(text) {
        Ok(Verdict::Accept(text)) => router.route(&text, &TOLD),
        other => unreachable!("{other:?}"),
    }
}

/// What `tools/routing/ngrams.py`, which trains the head, hashes these texts to.
#[test]
fn buckets_are_those_that_the_head_was_trained_on() {
    let wanted = [
        4865, 22662, 50677, 60836, 74442, 153_940, 168_154, 174_020, 221_106, 252_413,
    ];
    assert_eq!(NgramHead::buckets("花生", 1 << 18), wanted);
    let buckets = NgramHead::buckets("Nüsse, 12?", 1 << 18);
    assert_eq!(
        (buckets.len(), buckets[0], buckets[49]),
        (50, 8121, 259_059)
    );
}

#[test]
fn the_lexical_stage_decides_first_and_other_languages_do_not_stay_unrouted() {
    assert_eq!(
        route("I'm allergic to tree nuts").route.stage,
        Stage::Lexical
    );
    for text in [
        "vivo en un cuarto piso sin ascensor",
        "wir haben die Küche in Marmor gemacht",
        "キッチンは大理石です",
    ] {
        let route = route(text).route;
        assert_ne!(route.judgement, Judgement::Unrouted, "{text}");
        assert_eq!(route.stage, Stage::Semantic, "{text}");
        assert!((0.0..=1.0).contains(&route.score), "{text}");
    }
    // English waits for the head on the encoder.
    for text in [
        "our banister is older than the street",
        "can you shorten this?",
    ] {
        assert_eq!(route(text).route.judgement, Judgement::Unrouted, "{text}");
    }
}
