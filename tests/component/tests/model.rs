//! The component that holds a model, and what a host hands in instead.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on"
)]

use std::path::{Path, PathBuf};

use foremind_component_tests::{Buckets, Error, Instance, OpenOptions, Scope, World, code};
use foremind_types::ErrorCode;
use wasmtime::component::ResourceAny;

const BUCKET: &str = "ada";

/// The packed model, as it is built beside the component.
fn pack() -> Vec<u8> {
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/model");
    let folder = std::env::var_os("FOREMIND_MODEL_DIR").map_or(built, PathBuf::from);
    std::fs::read(folder.join("minilm-l6-v2.fmpack")).unwrap()
}

fn open(
    instance: &mut Instance,
    bucket: &str,
    model: Option<Vec<u8>>,
) -> Result<ResourceAny, Error> {
    let options = OpenOptions {
        key: vec![7; 32],
        model,
        utc_offset_min: 0,
        policy: None,
    };
    instance.open(bucket, &options).unwrap()
}

#[test]
fn it_finds_by_meaning_with_the_model_inside_and_with_one_handed_in() {
    let scope = Scope {
        user: "ada".to_owned(),
        project: None,
        thread: None,
        agent: None,
    };
    let mut found = Vec::new();
    for model in [None, Some(pack())] {
        let buckets = Buckets::default();
        let mut instance = Instance::of(World::Model, &buckets, 1).unwrap();
        let memory = open(&mut instance, BUCKET, model).unwrap();
        let mut ids = Vec::new();
        for text in [
            "The brown couch stands in the living room",
            "Our train leaves at nine",
        ] {
            let told = instance.remember(memory, &scope, text).unwrap().unwrap();
            ids.extend(told);
        }
        // No word of it stands in what was told.
        let prompt = instance.recall(memory, &scope, "what colour is my sofa?", None);
        let prompt = prompt.unwrap().unwrap();
        assert!(!prompt.lexical_only);
        assert_eq!(prompt.context.first(), ids.first(), "{}", prompt.text);
        found.push((prompt.text, buckets.values(BUCKET)));
    }
    // The same file, the same bytes.
    assert!(found[0] == found[1]);
}

#[test]
fn a_file_that_is_handed_in_is_the_one_that_counts() {
    let buckets = Buckets::default();
    let mut instance = Instance::of(World::Model, &buckets, 1).unwrap();
    let mut altered = pack();
    let middle = altered.len() / 2;
    altered[middle] ^= 1;
    for model in [b"not a model".to_vec(), altered] {
        let error = open(&mut instance, BUCKET, Some(model)).unwrap_err();
        assert_eq!(code(&error), ErrorCode::ModelInvalid);
        assert!(buckets.values(BUCKET).is_empty());
    }
}
