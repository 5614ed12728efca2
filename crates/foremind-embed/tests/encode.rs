//! What the embedder does around the network, on a model small enough to compute by hand.
#![cfg(feature = "onnx")]

mod common;

use common::{
    COLUMNS, VOCABULARY, onnx, onnx_of_unknown_operator, quantised_onnx, row, row_scale, tiny_pack,
};
use foremind_embed::{EMBEDDING_HEAD, EmbedError, Embedder, pack};
use foremind_types::{ErrorCode, HeadId};

fn head() -> HeadId {
    HeadId(EMBEDDING_HEAD.to_owned())
}

fn loaded() -> Embedder {
    Embedder::load(tiny_pack(VOCABULARY, 8)).unwrap()
}

fn refusal(pack: Vec<u8>) -> EmbedError {
    Embedder::load(pack).err().expect("refused")
}

/// The unit vector of some rows, in f64.
fn expected(tokens: &[usize]) -> [f64; COLUMNS] {
    let mut sum = [0.0; COLUMNS];
    for token in tokens {
        for (total, x) in sum.iter_mut().zip(row(*token)) {
            *total += f64::from(x);
        }
    }
    let length = sum.iter().map(|x| x * x).sum::<f64>().sqrt();
    sum.map(|x| x / length)
}

#[test]
fn vectors_are_means_of_rows_scaled_to_one() {
    let embedder = loaded();
    // [CLS] tree nut ##s [SEP]
    let expected = expected(&[2, 4, 5, 6, 3]);
    let unit = embedder.encode_f32("Tree NUTS").unwrap();
    for (x, y) in unit.iter().zip(expected) {
        assert!((f64::from(*x) - y).abs() < 1e-6, "{x} for {y}");
    }
    let rows = embedder
        .encode(&["Tree NUTS", "marble", "tree  nuts"], &[head()])
        .unwrap();
    assert_eq!(rows.len(), 3);
    let embedding = &rows[0][0];
    assert_eq!(embedding.model_id.0, "tiny/1");
    assert_eq!(embedding.head_id, head());
    assert!(embedding.features.is_empty());
    for (q, y) in embedding.vector.iter().zip(expected) {
        let x = f64::from(*q) * f64::from(embedding.scale);
        assert!(
            (x - y).abs() <= f64::from(embedding.scale) * 0.501,
            "{x} for {y}"
        );
    }
    assert_eq!(rows[0], rows[2]);
    assert_ne!(rows[0], rows[1]);
}

#[test]
fn rows_of_8_bits_are_scaled_each_by_its_own() {
    let pack = pack::write("tiny/1", VOCABULARY.as_bytes(), &quantised_onnx(8));
    let unit = Embedder::load(pack)
        .unwrap()
        .encode_f32("marble tree")
        .unwrap();
    let mut sum = [0.0_f64; COLUMNS];
    // [CLS] marble tree [SEP]
    for token in [2, 7, 4, 3] {
        let scale = row_scale(token);
        for (total, x) in sum.iter_mut().zip(row(token)) {
            *total += f64::from((x / scale).round()) * f64::from(scale);
        }
    }
    let length = sum.iter().map(|x| x * x).sum::<f64>().sqrt();
    for (x, y) in unit.iter().zip(sum) {
        assert!(
            (f64::from(*x) - y / length).abs() < 1e-6,
            "{x} for {}",
            y / length
        );
    }
}

#[test]
fn long_texts_are_cut_at_256_tokens() {
    let embedder = loaded();
    let cut = embedder.encode_f32(&"marble ".repeat(254)).unwrap();
    let long = embedder
        .encode_f32(&format!("{}tree", "marble ".repeat(254)))
        .unwrap();
    let shorter = embedder.encode_f32(&"marble ".repeat(253)).unwrap();
    assert_eq!(cut, long);
    assert_ne!(cut, shorter);
}

#[test]
fn bad_calls_are_refused_before_any_work() {
    let embedder = loaded();
    for empty in ["", " ", "\t\r\n", "\u{3000}\u{a0}"] {
        let error = embedder.encode(&["marble", empty], &[head()]).unwrap_err();
        assert_eq!(error, EmbedError::TextEmpty { at: 1 });
        assert_eq!(error.code(), ErrorCode::TextEmpty);
        assert!(embedder.encode_f32(empty).is_err());
    }
    let found = HeadId("route/9".to_owned());
    let error = embedder
        .encode(&["marble"], &[head(), found.clone()])
        .unwrap_err();
    assert_eq!(error, EmbedError::UnknownHead { found });
    assert_eq!(error.code(), ErrorCode::InvalidArgument);
    assert_eq!(
        embedder.encode(&["marble"; 9], &[head()]),
        Err(EmbedError::TooManyTexts {
            expected: 8,
            found: 9
        })
    );
    assert_eq!(embedder.encode(&[], &[head()]), Ok(vec![]));
    assert_eq!(embedder.encode(&["marble"], &[]), Ok(vec![vec![]]));
}

#[test]
fn texts_without_a_single_token_still_have_a_vector() {
    let unit = loaded().encode_f32("\u{1}\u{200b}").unwrap();
    for (x, y) in unit.iter().zip(expected(&[2, 3])) {
        assert!((f64::from(*x) - y).abs() < 1e-6, "{x} for {y}");
    }
}

#[test]
fn a_vocabulary_of_another_size_is_refused() {
    let error = refusal(tiny_pack(VOCABULARY, 9));
    assert_eq!(
        error,
        EmbedError::VocabularySize {
            expected: 9,
            found: 8
        }
    );
    assert_eq!(error.code(), ErrorCode::ModelInvalid);
}

#[test]
fn weights_that_are_no_sentence_encoder_are_refused() {
    let with = |weights: &[u8]| refusal(pack::write("tiny/1", VOCABULARY.as_bytes(), weights));
    let inputs = ["input_ids", "attention_mask", "token_type_ids"];
    for (error, part) in [
        (with(b"not an ONNX file"), "ONNX file"),
        (with(b""), "found none"),
        (
            with(&onnx(8, &inputs[..2], "Gather")),
            "[\"input_ids\", \"attention_mask\"]",
        ),
        (with(&onnx(8, &["pixels"], "Gather")), "[\"pixels\"]"),
        (
            with(&onnx(8, &inputs, "GatherElements")),
            "gathered by input_ids",
        ),
        (with(&onnx_of_unknown_operator(8)), "NoSuchOperator"),
    ] {
        assert_eq!(error.code(), ErrorCode::ModelInvalid);
        assert!(error.to_string().contains(part), "{error}");
    }
}

#[test]
fn vocabularies_that_cannot_be_used_are_refused() {
    for vocabulary in [
        "[UNK]\n[CLS]\n",
        "[UNK]\n[CLS]\n[SEP]\n\nword\n",
        "[UNK]\n[CLS]\n[SEP]\nword\nword\n",
        "",
    ] {
        let error = refusal(tiny_pack(vocabulary, 8));
        assert!(matches!(error, EmbedError::BadVocabulary { .. }), "{error}");
    }
    let error = refusal(pack::write("tiny/1", b"[UNK]\n\xff\n", b""));
    assert!(matches!(error, EmbedError::BadVocabulary { .. }), "{error}");
}
