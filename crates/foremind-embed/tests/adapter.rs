//! Adapters: what their changes and heads compute, how they share layers, and what is refused.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on"
)]

mod common;
#[path = "common/reference.rs"]
mod reference;
#[path = "common/small.rs"]
mod small;

use common::Seeded;
use foremind_embed::adapter::{self, Activation, Change, Content, HeadContent, Map, Pooling};
use foremind_embed::{EMBEDDING_HEAD, EmbedError, Embedder, Part};
use foremind_types::{ErrorCode, HeadId, ModelId};
use reference::Reference;
use small::{LAYERS, WIDE, WIDTH, numbers, small, small_pack};

const MODEL: &str = "small/1";
const TEXTS: [&str; 5] = [
    "tree",
    "marble nuts",
    "tree nuts, marble; marble!",
    "nut nut nut nut nut nut nut nut nut tree",
    "unheard of",
];

fn model_id() -> ModelId {
    ModelId(MODEL.to_owned())
}

fn head_id(id: &str) -> HeadId {
    HeadId(id.to_owned())
}

fn shape(part: Part) -> (usize, usize) {
    match part {
        Part::Expand => (WIDE, WIDTH),
        Part::Contract => (WIDTH, WIDE),
        _ => (WIDTH, WIDTH),
    }
}

fn change(seeded: &mut Seeded, layer: usize, part: Part, rank: usize, scale: f32) -> Change {
    let (outputs, inputs) = shape(part);
    Change {
        layer,
        part,
        rank,
        a: numbers(seeded, rank * inputs, 0.1),
        b: numbers(seeded, outputs * rank, scale),
    }
}

/// A change of every matrix from `layer` on.
fn changes(seeded: &mut Seeded, layer: usize, scale: f32) -> Vec<Change> {
    (layer..LAYERS)
        .flat_map(|layer| Part::ALL.map(|part| (layer, part)))
        .enumerate()
        .map(|(at, (layer, part))| change(seeded, layer, part, at % 16 + 1, scale))
        .collect()
}

fn map(seeded: &mut Seeded, inputs: usize, outputs: usize, activation: Activation) -> Map {
    Map {
        activation,
        weights: numbers(seeded, outputs * inputs, 0.3),
        bias: numbers(seeded, outputs, 0.5),
    }
}

fn vector_head(id: &str) -> HeadContent {
    HeadContent {
        id: id.to_owned(),
        adapted: true,
        vector: true,
        unit: false,
        pooling: Pooling::Mean,
        maps: Vec::new(),
    }
}

fn embedder() -> Embedder {
    Embedder::load(small_pack(MODEL)).unwrap()
}

fn with(content: &Content) -> Embedder {
    let mut embedder = embedder();
    let file = adapter::write(&model_id(), content).unwrap();
    embedder.load_adapter(file).unwrap();
    embedder
}

fn cosine(a: &[f64], b: &[f64]) -> f64 {
    let dot = |a: &[f64], b: &[f64]| -> f64 { a.iter().zip(b).map(|(x, y)| x * y).sum() };
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}

#[test]
fn a_changed_encoder_computes_what_changed_weights_would() {
    let mut seeded = Seeded(1);
    let content = Content {
        changes: changes(&mut seeded, 1, 0.15),
        heads: vec![vector_head("changed/1")],
    };
    // The same changes, merged into the f32 weights of a plain encoder.
    let mut merged = Reference::new(&small());
    for change in &content.changes {
        let (outputs, inputs) = shape(change.part);
        let weights = &mut merged.layers[change.layer].linear[change.part as usize][0];
        for output in 0..outputs {
            for input in 0..inputs {
                weights[output * inputs + input] += (0..change.rank)
                    .map(|r| change.b[output * change.rank + r] * change.a[r * inputs + input])
                    .sum::<f32>();
            }
        }
    }
    let plain = Reference::new(&small());
    let embedder = with(&content);
    let rows = embedder.encode(&TEXTS, &[head_id("changed/1")]).unwrap();
    for (text, row) in TEXTS.iter().zip(&rows) {
        let tokens = embedder.tokens(text);
        let found: Vec<f64> = row[0].vector.iter().map(|x| f64::from(*x)).collect();
        let expected = cosine(&found, &merged.unit_vector(&tokens));
        let unchanged = cosine(&found, &plain.unit_vector(&tokens));
        assert!(expected > 0.999, "{text}: {expected}");
        assert!(
            unchanged < 0.98,
            "{text}: the change is too small to tell, {unchanged}"
        );
    }
}

#[test]
fn heads_compute_what_they_say() {
    let mut seeded = Seeded(2);
    let query = numbers(&mut seeded, WIDTH, 0.2);
    let maps = vec![
        map(&mut seeded, WIDTH, 24, Activation::Gelu),
        map(&mut seeded, 24, 16, Activation::Relu),
        map(&mut seeded, 16, 5, Activation::None),
    ];
    let heads = [
        ("mean/1", Pooling::Mean, false),
        ("unit/1", Pooling::Mean, true),
        ("first/1", Pooling::First, false),
        ("attention/1", Pooling::Attention(query.clone()), true),
    ];
    let content = Content {
        changes: Vec::new(),
        heads: heads
            .map(|(id, pooling, unit)| HeadContent {
                id: id.to_owned(),
                adapted: true,
                vector: false,
                unit,
                pooling,
                maps: maps.clone(),
            })
            .to_vec(),
    };
    let embedder = with(&content);
    let ids = heads_of(&content);
    let reference = Reference::new(&small());
    let gelu = |x: f64| x * 0.5 * (1.0 + reference::erf(x / 2f64.sqrt()));
    for (text, row) in TEXTS.iter().zip(embedder.encode(&TEXTS, &ids).unwrap()) {
        let states = reference.states(&embedder.tokens(text));
        let rows: Vec<Vec<f64>> = states
            .chunks_exact(WIDTH)
            .map(|row| row.iter().map(|x| f64::from(*x)).collect())
            .collect();
        for (head, embedding) in content.heads.iter().zip(&row) {
            let shares: Vec<f64> = match &head.pooling {
                Pooling::Mean => vec![1.0; rows.len()],
                Pooling::First => (0..rows.len())
                    .map(|at| f64::from(u8::from(at == 0)))
                    .collect(),
                Pooling::Attention(query) => rows
                    .iter()
                    .map(|row| {
                        row.iter()
                            .zip(query)
                            .map(|(x, q)| x * f64::from(*q))
                            .sum::<f64>()
                            .exp()
                    })
                    .collect(),
            };
            let sum: f64 = shares.iter().sum();
            let mut state: Vec<f64> = (0..WIDTH)
                .map(|at| {
                    rows.iter()
                        .zip(&shares)
                        .map(|(row, share)| row[at] * share / sum)
                        .sum()
                })
                .collect();
            if head.unit {
                let length = state.iter().map(|x| x * x).sum::<f64>().sqrt();
                state.iter_mut().for_each(|x| *x /= length);
            }
            for map in &head.maps {
                let inputs = state.len();
                let outputs = map.weights.chunks_exact(inputs).zip(&map.bias);
                state = outputs
                    .map(|(weights, bias)| {
                        let dot: f64 = weights
                            .iter()
                            .zip(&state)
                            .map(|(w, x)| f64::from(*w) * x)
                            .sum();
                        let x = dot + f64::from(*bias);
                        match map.activation {
                            Activation::None => x,
                            Activation::Relu => x.max(0.0),
                            Activation::Gelu => gelu(x),
                        }
                    })
                    .collect();
            }
            assert_eq!((embedding.features.len(), embedding.vector.len()), (5, 0));
            let found: Vec<f64> = embedding.features.iter().map(|x| f64::from(*x)).collect();
            let close = cosine(&found, &state);
            assert!(
                close > 0.998,
                "{} of {text}: {close}\n{found:?}\n{state:?}",
                head.id
            );
            assert_eq!(embedding.model_id, model_id());
            assert_eq!(embedding.head_id.0, head.id);
        }
    }
}

fn heads_of(content: &Content) -> Vec<HeadId> {
    content.heads.iter().map(|head| head_id(&head.id)).collect()
}

#[test]
fn heads_asked_together_give_what_each_gives_alone() {
    let mut seeded = Seeded(3);
    let mut embedder = embedder();
    let mut ids = vec![head_id(EMBEDDING_HEAD)];
    for (number, layer) in [1, 2, 0].into_iter().enumerate() {
        let mut plain = vector_head(&format!("plain/{number}"));
        plain.adapted = false;
        let content = Content {
            changes: changes(&mut seeded, layer, 0.1),
            heads: vec![vector_head(&format!("changed/{number}")), plain],
        };
        ids.extend(heads_of(&content));
        let file = adapter::write(&model_id(), &content).unwrap();
        embedder.load_adapter(file).unwrap();
    }
    assert_eq!(embedder.heads().collect::<Vec<_>>(), ids);
    let together = embedder.encode(&TEXTS, &ids).unwrap();
    for (text, row) in TEXTS.iter().zip(&together) {
        for (id, embedding) in ids.iter().zip(row) {
            let alone = embedder.encode(&[text], core::slice::from_ref(id)).unwrap();
            assert_eq!(&alone[0][0], embedding, "{} of {text}", id.0);
        }
        // Heads without changes see what the plain embedding sees; changed ones do not.
        for (embedding, id) in row.iter().zip(&ids).skip(1) {
            let same = embedding.vector == row[0].vector;
            assert_eq!(same, id.0.starts_with("plain"), "{}", id.0);
        }
    }
    // An embedder without adapters gives the same plain vectors.
    let plain = crate::embedder().encode(&TEXTS, &ids[..1]).unwrap();
    assert!(plain.iter().zip(&together).all(|(a, b)| a[0] == b[0]));
}

#[test]
fn what_is_written_is_read() {
    let mut seeded = Seeded(4);
    let content = Content {
        changes: changes(&mut seeded, 2, 0.1),
        heads: vec![
            vector_head("a/1"),
            HeadContent {
                pooling: Pooling::Attention(numbers(&mut seeded, WIDTH, 0.1)),
                maps: vec![map(&mut seeded, WIDTH, 64, Activation::None)],
                ..vector_head("b/1")
            },
        ],
    };
    let file = adapter::write(&model_id(), &content).unwrap();
    assert_eq!(file, adapter::write(&model_id(), &content).unwrap());
    let (found_id, found) = adapter::read(file).unwrap();
    assert_eq!(found_id, model_id());
    assert_eq!(heads_of(&found), heads_of(&content));
    for (found, written) in found.changes.iter().zip(&content.changes) {
        assert_eq!(
            (found.layer, found.part, found.rank),
            (written.layer, written.part, written.rank)
        );
        for (found, written) in found
            .a
            .iter()
            .zip(&written.a)
            .chain(found.b.iter().zip(&written.b))
        {
            // Half a step of 15 bits of at most 0.1.
            assert!((found - written).abs() < 2e-6);
        }
    }
    assert_eq!(found.heads[0], content.heads[0]);
    assert_eq!(found.heads[1].maps[0].bias.len(), 64);
}

fn small_content() -> Content {
    let mut seeded = Seeded(5);
    Content {
        changes: vec![change(&mut seeded, 2, Part::Query, 1, 0.1)],
        heads: vec![HeadContent {
            maps: vec![map(&mut seeded, WIDTH, 2, Activation::None)],
            ..vector_head("route/1")
        }],
    }
}

#[test]
fn an_adapter_of_another_model_is_refused() {
    let mut embedder = embedder();
    let other = ModelId("other/7".to_owned());
    let error = embedder
        .load_adapter(adapter::write(&other, &small_content()).unwrap())
        .unwrap_err();
    assert_eq!(
        error,
        EmbedError::AdapterOfAnotherModel {
            expected: model_id(),
            found: other
        }
    );
    assert_eq!(error.code(), ErrorCode::ModelInvalid);
    let text = error.to_string();
    assert!(
        text.contains("small/1") && text.contains("other/7"),
        "{text}"
    );
    assert_eq!(embedder.heads().count(), 1);
    assert!(
        embedder
            .encode(&["tree"], &[head_id(EMBEDDING_HEAD)])
            .is_ok()
    );
}

#[test]
fn cut_altered_foreign_and_newer_adapters_are_refused() {
    let file = adapter::write(&model_id(), &small_content()).unwrap();
    let mut embedder = embedder();
    let mut refusal = |file: Vec<u8>| embedder.load_adapter(file).expect_err("refused");
    for end in (0..file.len()).step_by(7) {
        let error = refusal(file[..end].to_vec());
        let named = matches!(error, EmbedError::WrongLength { found, .. } if found == end as u64);
        assert!(named || end == 0, "cut at {end}: {error}");
    }
    for at in 0..file.len() {
        let mut altered = file.clone();
        altered[at] ^= 1 << (at % 8);
        let _ = refusal(altered);
    }
    assert!(matches!(
        refusal(small_pack(MODEL)),
        EmbedError::NotAnAdapterFile { .. }
    ));
    let mut newer = file.clone();
    newer[8] = 2;
    assert_eq!(
        refusal(newer),
        EmbedError::NewerFormat { known: 1, found: 2 }
    );
    let as_model = Embedder::load(file).err().expect("refused");
    assert!(matches!(as_model, EmbedError::NotAModelFile { .. }));
}

#[test]
fn content_that_no_reader_takes_is_not_written() {
    let head = |change: fn(&mut HeadContent)| {
        let mut content = small_content();
        change(&mut content.heads[0]);
        content
    };
    let matrix = |change: fn(&mut Change)| {
        let mut content = small_content();
        change(&mut content.changes[0]);
        content
    };
    let mut twice = small_content();
    twice.changes.push(twice.changes[0].clone());
    let mut twin = small_content();
    twin.heads.push(twin.heads[0].clone());
    for (content, part) in [
        (head(|head| head.id = String::new()), "head id"),
        (head(|head| head.id = "x".repeat(65)), "head id"),
        (head(|head| head.id = EMBEDDING_HEAD.to_owned()), "new id"),
        (
            head(|head| head.maps = vec![head.maps[0].clone(); 4]),
            "rows of",
        ),
        (head(|head| head.maps[0].bias.clear()), "rows of"),
        (
            head(|head| {
                head.maps[0].bias = vec![0.0; 65];
                head.maps[0].weights = vec![0.0; 65 * WIDTH];
            }),
            "65",
        ),
        (
            head(|head| {
                head.maps.clear();
                head.vector = false;
            }),
            "neither",
        ),
        (head(|head| head.maps[0].bias[0] = f32::NAN), "983"),
        (head(|head| head.maps[0].bias[0] = 1e6), "983"),
        (matrix(|change| change.rank = 0), "rows of"),
        (
            matrix(|change| {
                change.rank = 17;
                change.a = vec![0.0; 17 * WIDTH];
                change.b = vec![0.0; 17 * WIDTH];
            }),
            "rank",
        ),
        (twice, "once"),
        (twin, "new id"),
    ] {
        let error = adapter::write(&model_id(), &content).unwrap_err();
        assert!(matches!(error, EmbedError::BadAdapter { .. }), "{error}");
        assert!(error.to_string().contains(part), "{part}: {error}");
    }
}

#[test]
fn changes_of_layers_that_are_not_there_and_heads_loaded_twice_are_refused() {
    let mut embedder = embedder();
    let mut content = small_content();
    content.changes[0].layer = LAYERS;
    let error = embedder
        .load_adapter(adapter::write(&model_id(), &content).unwrap())
        .unwrap_err();
    assert!(
        error.to_string().contains("matrices that the model has"),
        "{error}"
    );
    let file = adapter::write(&model_id(), &small_content()).unwrap();
    embedder.load_adapter(file.clone()).unwrap();
    let error = embedder.load_adapter(file).unwrap_err();
    assert!(error.to_string().contains("route/1"), "{error}");
}
