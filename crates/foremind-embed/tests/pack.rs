//! Model files that are not what they should be are refused with what was expected and what was found.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on"
)]

use foremind_embed::EmbedError;
use foremind_embed::pack::{self, Pack, Section};

const VOCABULARY: &[u8] = b"[UNK]\n[CLS]\n[SEP]\n";
const WEIGHTS: &[u8] = b"some weights that only the backend would judge";

fn good() -> Vec<u8> {
    pack::write("minilm/1", VOCABULARY, WEIGHTS)
}

fn refusal(bytes: Vec<u8>) -> EmbedError {
    Pack::read(bytes).err().expect("refused")
}

/// Puts the right checksum under a header that a test has changed.
fn reseal(file: &mut [u8], sections: usize) {
    let hash_at = 24 + "minilm/1".len() + 52 * sections;
    let hash = blake3::hash(&file[..hash_at]);
    file[hash_at..hash_at + 32].copy_from_slice(hash.as_bytes());
}

#[test]
fn what_was_packed_is_read_in_place() {
    let pack = Pack::read(good()).unwrap();
    assert_eq!(pack.model_id().0, "minilm/1");
    assert_eq!(pack.section(Section::Vocabulary), Ok(VOCABULARY));
    assert_eq!(pack.section(Section::Onnx), Ok(WEIGHTS));
    assert_eq!(good(), good());
}

#[test]
fn sections_may_be_absent_until_they_are_asked_for() {
    let file = pack::write_sections("minilm/1", &[(Section::Vocabulary, VOCABULARY)]);
    let pack = Pack::read(file).unwrap();
    assert_eq!(
        pack.section(Section::Onnx),
        Err(EmbedError::SectionMissing { section: "onnx" })
    );
}

#[test]
fn every_cut_is_named_as_a_cut() {
    let file = good();
    for end in 0..file.len() {
        let error = refusal(file[..end].to_vec());
        if end == 0 {
            assert_eq!(error, EmbedError::NotAModelFile { found: vec![] });
            continue;
        }
        let EmbedError::WrongLength { expected, found } = error else {
            panic!("cut at {end}: {error}");
        };
        assert_eq!(found, end as u64);
        // Before the length field nobody can know more than that the fixed header is incomplete.
        let known = if end < 24 { 24 } else { file.len() as u64 };
        assert_eq!(expected, known, "cut at {end}");
    }
    let mut longer = file.clone();
    longer.push(0);
    assert_eq!(
        refusal(longer),
        EmbedError::WrongLength {
            expected: file.len() as u64,
            found: file.len() as u64 + 1
        }
    );
}

#[test]
fn every_flipped_bit_is_noticed() {
    let file = good();
    for bit in 0..file.len() * 8 {
        let mut altered = file.clone();
        altered[bit / 8] ^= 1 << (bit % 8);
        assert!(Pack::read(altered).is_err(), "bit {bit}");
    }
    let mut altered = file;
    let last = altered.len() - 1;
    altered[last] ^= 1;
    let EmbedError::Altered {
        part,
        expected,
        found,
    } = refusal(altered)
    else {
        panic!("expected an altered section");
    };
    assert_eq!(part, "onnx");
    assert_eq!((expected.len(), found.len()), (16, 16));
    assert_ne!(expected, found);
}

#[test]
fn foreign_and_newer_files_are_told_apart() {
    assert_eq!(
        refusal(b"PK\x03\x04 a zip archive that is long enough".to_vec()),
        EmbedError::NotAModelFile {
            found: b"PK\x03\x04 a z".to_vec()
        }
    );
    let mut newer = good();
    newer[8] = 2;
    assert_eq!(
        refusal(newer),
        EmbedError::NewerFormat { known: 1, found: 2 }
    );
    let mut older = good();
    older[8] = 0;
    reseal(&mut older, 2);
    assert_eq!(refusal(older), EmbedError::BadHeader { what: "format 0" });
}

#[test]
fn headers_that_a_broken_writer_could_make_are_refused() {
    let row = 24 + "minilm/1".len();
    // (byte, value): the second section moved, made longer, made the first one's twin.
    for (at, value) in [(row + 52 + 4, 0xff), (row + 52 + 12, 0xff), (row + 52, 1)] {
        let mut file = good();
        file[at] = value;
        reseal(&mut file, 2);
        let error = refusal(file);
        assert!(
            matches!(error, EmbedError::BadHeader { .. }),
            "byte {at}: {error}"
        );
    }
    for id in [String::new(), "x".repeat(129)] {
        let error = refusal(pack::write(&id, VOCABULARY, WEIGHTS));
        assert!(matches!(error, EmbedError::BadHeader { .. }), "{error}");
    }
    let none = refusal(pack::write_sections("minilm/1", &[]));
    assert!(matches!(none, EmbedError::BadHeader { .. }), "{none}");
}

#[test]
fn unknown_sections_are_skipped_but_checked() {
    let mut file = good();
    let row = 24 + "minilm/1".len();
    file[row + 52 + 3] = 0x7f;
    reseal(&mut file, 2);
    let pack = Pack::read(file.clone()).unwrap();
    assert!(pack.section(Section::Vocabulary).is_ok());
    assert!(pack.section(Section::Onnx).is_err());
    let last = file.len() - 1;
    file[last] ^= 1;
    assert!(matches!(
        refusal(file),
        EmbedError::Altered {
            part: "unknown section",
            ..
        }
    ));
}
