//! What opening a memory and writing to it cost without any host: `cargo run --release -p foremind-testkit
//! --example open_cost -- 1000`.

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a measurement")]

use std::time::Instant;

use foremind_memory::Request;
use foremind_testkit::{MemoryStore, NoEncoder, SeededAmbient, drive, open};
use foremind_types::{Name, Role, Scope};

const HOST_KEY: [u8; 32] = [7; 32];

fn main() {
    let records: usize = std::env::args().nth(1).map_or(1000, |n| n.parse().unwrap());
    let scope = Scope::user(Name::new("ada").unwrap());
    let mut store = MemoryStore::default();
    let mut ambient = SeededAmbient::new(1);
    let mut memory = open(HOST_KEY, &mut store, &mut ambient).unwrap();
    let places = [
        "garden", "office", "kitchen", "station", "library", "harbour", "market",
    ];
    let things = [
        "lamp", "bicycle", "recipe", "ticket", "novel", "violin", "sofa", "camera",
    ];

    let begun = Instant::now();
    for n in 0..records {
        let text = format!(
            "On day {n} I took the {} to the {} and talked with number {} about it for a while.",
            things[n % things.len()],
            places[n / 3 % places.len()],
            n * 7919 % 1000,
        );
        let request = Request::Remember {
            scope: scope.clone(),
            text,
            role: Role::User,
            thread: None,
            turn: None,
            tier: None,
        };
        drive(
            &mut memory,
            request,
            &mut store,
            &mut NoEncoder,
            &mut ambient,
        )
        .unwrap();
    }
    let write = begun.elapsed();
    let bytes: usize = store.values().values().map(Vec::len).sum();
    println!(
        "{records} writes: {:.3} ms each; {} values, {bytes} bytes",
        write.as_secs_f64() * 1e3 / records as f64,
        store.values().len()
    );

    for _ in 0..5 {
        let begun = Instant::now();
        let mut memory = open(HOST_KEY, &mut store, &mut ambient).unwrap();
        let opened = begun.elapsed();
        let request = Request::Recall {
            audience: foremind_engine::Audience::Device,
            scope: scope.clone(),
            query: "Where did I take the violin?".to_owned(),
            budget_tokens: 512,
            as_of_ms: None,
            exposure: foremind_engine::Exposure::Full,
            deadline_ms: None,
            explain: false,
        };
        let begun = Instant::now();
        drive(
            &mut memory,
            request,
            &mut store,
            &mut NoEncoder,
            &mut ambient,
        )
        .unwrap();
        println!(
            "open {:.2} ms, recall {:.2} ms",
            opened.as_secs_f64() * 1e3,
            begun.elapsed().as_secs_f64() * 1e3
        );
    }
}
