//! Tells a memory in this process a story and prints the prompts: what every other host must print, too.
//! `story STORY NOW_MS`, see `examples/README.md`.

#![allow(clippy::print_stdout, reason = "a program that prints prompts")]

use foremind_memory::{Audience, Exposure, Request, Response};
use foremind_testkit::{MemoryStore, NoEncoder, SeededAmbient, drive, open};
use foremind_types::{Name, Role, Scope};

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [story, now_ms] = arguments.as_slice() else {
        return Err("usage: STORY NOW_MS".into());
    };
    let (mut store, mut ambient) = (MemoryStore::default(), SeededAmbient::new(1));
    ambient.stand_at(now_ms.parse()?);
    let failed = |error: foremind_types::Error| error.message;
    let mut memory = open([7; 32], &mut store, &mut ambient).map_err(failed)?;
    let scope = Scope::user(Name::new("ada")?);
    for line in std::fs::read_to_string(story)?.lines() {
        ambient.advance_ms(1_000);
        let (verb, text) = line.split_once(' ').unwrap_or_default();
        let (scope, text) = (scope.clone(), text.to_owned());
        let request = match verb {
            "tell" => Request::Remember {
                scope,
                text,
                role: Role::User,
                thread: None,
                turn: None,
                tier: None,
            },
            "ask" => Request::Recall {
                scope,
                query: text.clone(),
                budget_tokens: 512,
                as_of_ms: None,
                exposure: Exposure::Full,
                audience: Audience::Device,
                deadline_ms: None,
                explain: false,
            },
            _ => continue,
        };
        let response = drive(
            &mut memory,
            request,
            &mut store,
            &mut NoEncoder,
            &mut ambient,
        );
        if let Response::Recall(prompt) = response.map_err(failed)? {
            println!(
                "PROMPT: {}\n{}",
                line.trim_start_matches("ask "),
                prompt.prompt
            );
        }
    }
    Ok(())
}
