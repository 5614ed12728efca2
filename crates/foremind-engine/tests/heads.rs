//! The encoder's head judges what words leave open: at once, or when the encoder comes.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failing helper is a failing test"
)]

mod common;

use common::{Memory, embedding, request, scope};
use foremind_engine::{EMBEDDING_HEAD, Reply, Response, Step};
use foremind_router::{FEATURES, ROUTE_HEAD};
use foremind_types::{Embedding, EncodeFailure, HeadId, Judgement, Record, Stage, Tier};
use serde_json::{Value, json};

const MARBLE: &str = "we walk over marble to get to bed";
const FILM: &str = "we watched a film about a heist";

/// A head that finds a circumstance in marble and an informer in all else.
fn judged(text: &str) -> Embedding {
    let mut features = vec![0.0; FEATURES];
    features[if text.contains("marble") { 1 } else { 2 }] = 12.0;
    Embedding {
        model_id: embedding(text, "words").model_id,
        head_id: HeadId(ROUTE_HEAD.to_owned()),
        vector: Vec::new(),
        scale: 1.0,
        features,
    }
}

/// Runs a request; what the encoder was asked for, and the response.
fn run(memory: &mut Memory, json: Value, encoder: bool) -> (Vec<Vec<HeadId>>, Response) {
    let mut op = memory.engine.begin(request(json));
    let mut reply = Reply::Begin;
    let mut asked = Vec::new();
    loop {
        let at = memory.at();
        reply = match memory.engine.step(&mut op, reply, &at) {
            Step::Done(result) => return (asked, result.unwrap()),
            Step::Encode { texts, heads } => {
                let rows = texts.iter().map(|text| {
                    let of = |head: &HeadId| match head.0.as_str() {
                        EMBEDDING_HEAD => embedding(text, "words"),
                        _ => judged(text),
                    };
                    heads.iter().map(of).collect()
                });
                let rows = encoder
                    .then(|| rows.collect())
                    .ok_or(EncodeFailure::NotReady);
                asked.push(heads);
                Reply::Encoded(rows)
            }
            Step::Commit { changes, .. } => {
                memory.commit(changes);
                Reply::Committed
            }
        };
    }
}

fn remember(memory: &mut Memory, text: &str, encoder: bool) -> (Vec<Vec<HeadId>>, Record) {
    let json = json!({"verb": "remember", "scope": {"user": "ada"}, "text": text});
    match run(memory, json, encoder) {
        (asked, Response::Remember { mut records }) => (asked, records.remove(0).record),
        other => panic!("{other:?}"),
    }
}

fn with_head() -> Memory {
    let mut memory = Memory::new();
    let head = HeadId(ROUTE_HEAD.to_owned());
    memory.engine.use_head(Some(head)).unwrap();
    memory
}

#[test]
fn a_circumstance_without_a_telling_word_is_shown() {
    let mut memory = with_head();
    let (asked, marble) = remember(&mut memory, MARBLE, true);
    let both = vec![
        HeadId(EMBEDDING_HEAD.to_owned()),
        HeadId(ROUTE_HEAD.to_owned()),
    ];
    assert_eq!(asked, [both], "one pass for the vector and the verdict");
    assert_eq!(
        (marble.route.tier, marble.route.stage),
        (Tier::Profile, Stage::Semantic)
    );
    let (_, film) = remember(&mut memory, FILM, true);
    assert_eq!(
        (film.route.tier, film.route.judgement),
        (Tier::Store, Judgement::Settled)
    );
    let profile = memory.profile(&scope("ada"), 512);
    assert_eq!(profile.profile.len(), 1);
    assert_eq!(profile.profile[0].record.id, marble.id);
}

#[test]
fn what_was_told_before_the_encoder_came_is_judged_when_it_is_encoded() {
    let mut memory = with_head();
    for text in [MARBLE, FILM] {
        let (_, record) = remember(&mut memory, text, false);
        assert_eq!(record.route.judgement, Judgement::Unrouted);
    }
    assert_eq!(memory.profile(&scope("ada"), 512).profile.len(), 0);
    let (_, response) = run(&mut memory, json!({"verb": "backfill", "max": 8}), true);
    assert!(
        matches!(
            response,
            Response::Backfill {
                encoded: 2,
                remaining: 0
            }
        ),
        "{response:?}"
    );
    let profile = memory.profile(&scope("ada"), 512).profile;
    assert_eq!(profile.len(), 1);
    assert_eq!(profile[0].record.text, MARBLE);
    let settled = memory.list(&scope("ada")).into_iter();
    assert!(
        settled
            .into_iter()
            .all(|record| record.route.judgement == Judgement::Settled)
    );
}

#[test]
fn other_languages_are_not_for_this_head_and_no_head_means_words_alone() {
    let mut memory = with_head();
    let (_, marmor) = remember(&mut memory, "wir haben die Küche mit marble gemacht", true);
    assert_eq!(marmor.route.judgement, Judgement::Unrouted);
    memory.engine.use_head(None).unwrap();
    let (asked, marble) = remember(&mut memory, MARBLE, true);
    assert_eq!(asked, [[HeadId(EMBEDDING_HEAD.to_owned())]]);
    assert_eq!(marble.route.judgement, Judgement::Unrouted);
    assert!(
        memory
            .engine
            .use_head(Some(HeadId("route/9".to_owned())))
            .is_err()
    );
}
