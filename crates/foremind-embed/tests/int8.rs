//! Model files of entropy-coded weights: what is altered, cut, foreign or does not fit is refused.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on"
)]

mod common;
#[path = "common/small.rs"]
mod small;

use common::VOCABULARY;
use foremind_embed::pack::{self, Pack, Section};
use foremind_embed::{EMBEDDING_HEAD, EmbedError, Embedder, TEXT_BYTES_MAX};
use foremind_types::{ErrorCode, HeadId};
use small::small_pack;

const MODEL: &str = "small/1";

fn refusal(pack: Vec<u8>) -> EmbedError {
    Embedder::load(pack).err().expect("refused")
}

/// A file of some vocabulary and weights.
fn packed(vocabulary: &str, weights: &[u8]) -> Vec<u8> {
    let sections = [
        (Section::Vocabulary, vocabulary.as_bytes()),
        (Section::Int8, weights),
    ];
    pack::write_sections(MODEL, &sections)
}

fn weights() -> Vec<u8> {
    let pack = Pack::read(small_pack(MODEL)).unwrap();
    pack.section(Section::Int8).unwrap().to_vec()
}

#[test]
fn equal_checkpoints_give_equal_files() {
    assert!(small_pack(MODEL) == small_pack(MODEL));
}

#[test]
fn every_altered_header_byte_and_samples_of_the_rest_are_noticed() {
    let file = small_pack(MODEL);
    let header = 24 + MODEL.len() + 2 * 52 + 32;
    for at in (0..header).chain((header..file.len()).step_by(file.len() / 60)) {
        for bit in [0, 7] {
            let mut altered = file.clone();
            altered[at] ^= 1 << bit;
            let error = refusal(altered);
            let code = error.code();
            assert!(
                matches!(code, ErrorCode::ModelInvalid | ErrorCode::NewerFormat),
                "byte {at}: {error}"
            );
        }
    }
    for end in (0..file.len()).step_by(file.len() / 40) {
        assert_eq!(
            refusal(file[..end].to_vec()).code(),
            ErrorCode::ModelInvalid
        );
    }
}

#[test]
fn a_vocabulary_of_another_size_is_refused() {
    let error = refusal(packed(&format!("{VOCABULARY}more\n"), &weights()));
    assert_eq!(
        error,
        EmbedError::VocabularySize {
            expected: 8,
            found: 9
        }
    );
    assert!(error.to_string().contains('8') && error.to_string().contains('9'));
}

#[test]
fn weights_of_another_version_or_shape_say_what_was_expected() {
    let with = |at: usize, byte: u8| {
        let mut weights = weights();
        weights[at] = byte;
        refusal(packed(VOCABULARY, &weights)).to_string()
    };
    let newer = with(0, 2);
    assert!(
        newer.contains("version 1") && newer.contains("found 2"),
        "{newer}"
    );
    let layers = with(2, 99);
    assert!(
        layers.contains("1 to 12 layers") && layers.contains("found 99"),
        "{layers}"
    );
    let width = with(8, 0x40);
    assert!(width.contains("384") && width.contains("320"), "{width}");
    let cut = weights();
    let error = refusal(packed(VOCABULARY, &cut[..cut.len() - 1]));
    assert!(matches!(error, EmbedError::BadWeights { .. }), "{error}");
}

#[test]
fn a_file_without_weights_for_this_build_is_refused() {
    let error = refusal(pack::write_sections(
        MODEL,
        &[(Section::Vocabulary, VOCABULARY.as_bytes())],
    ));
    assert_eq!(error, EmbedError::SectionMissing { section: "int8" });
}

#[test]
fn ten_megabytes_of_text_count_as_their_first_64_kib() {
    let embedder = Embedder::load(small_pack(MODEL)).unwrap();
    let long = "tree nuts ".repeat(1_000_000);
    assert_eq!(
        embedder.encode_f32(&long).unwrap(),
        embedder.encode_f32(&long[..TEXT_BYTES_MAX]).unwrap()
    );
    // White space up to the limit leaves nothing.
    let late = format!("{}tree", " ".repeat(TEXT_BYTES_MAX));
    let head = HeadId(EMBEDDING_HEAD.to_owned());
    let error = embedder.encode(&["tree", &late], &[head]).unwrap_err();
    assert_eq!(error, EmbedError::TextEmpty { at: 1 });
    // The cut never splits a character.
    let umlauts = format!("{}{}", " ".repeat(TEXT_BYTES_MAX - 5), "ü".repeat(9));
    assert!(embedder.encode_f32(&umlauts).is_ok());
}
