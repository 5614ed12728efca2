//! What a head makes of texts, for the training tools: reads JSON lines with `id` and `text` from standard input and writes
//! one line each with `id` and the head's `features`, computed as everywhere else.
//!
//!     outputs MODEL.fmpack ADAPTER.fmadpt HEAD
#![allow(missing_docs, clippy::print_stdout)]

use std::io::{BufRead, stdin};

use foremind_embed::Embedder;
use foremind_types::HeadId;
use foremind_types::limits::EMBED_TEXTS;
use serde_json::{Value, json};

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [model, adapter, head] = &arguments[..] else {
        return Err("usage: outputs MODEL.fmpack ADAPTER.fmadpt HEAD".into());
    };
    let mut embedder = Embedder::load(std::fs::read(model)?)?;
    embedder.load_adapter(std::fs::read(adapter)?)?;
    let heads = [HeadId(head.clone())];
    let rows = stdin()
        .lock()
        .lines()
        .map(|line| Ok(serde_json::from_str(&line?)?))
        .collect::<Result<Vec<Value>, Failure>>()?;
    for rows in rows.chunks(EMBED_TEXTS) {
        let texts = rows
            .iter()
            .map(|row| row["text"].as_str().ok_or("a row without text"))
            .collect::<Result<Vec<_>, _>>()?;
        for (row, of_text) in rows.iter().zip(embedder.encode(&texts, &heads)?) {
            let features = of_text.first().map(|one| &one.features);
            println!("{}", json!({"id": row["id"], "features": features}));
        }
    }
    Ok(())
}
