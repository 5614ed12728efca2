//! One host of many on a Redis: `redis-host SOCKET CODE`. Takes a line, answers with one, until it is killed.
//!
//! `write<TAB>memory<TAB>turn<TAB>text` and `recall<TAB>memory<TAB>query`; `ok<TAB>...` with line breaks as spaces, or
//! `error<TAB>code`.

#![allow(clippy::print_stdout, reason = "it answers there")]

use std::collections::BTreeMap;
use std::io::{BufRead, Write};
use std::path::Path;

use foremind_component_tests::redis::{RedisHost, RedisMemory};
use foremind_component_tests::{OpenOptions, Scope, code};

/// Memories that stay open, so that some are cold and some have been overtaken by other hosts.
const OPEN: usize = 8;

fn main() -> wasmtime::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [socket, machine_code] = arguments.as_slice() else {
        return Err(wasmtime::Error::msg("usage: SOCKET CODE"));
    };
    let host = RedisHost::new(Path::new(socket), Path::new(machine_code))?;
    let mut open = BTreeMap::new();
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let fields: Vec<&str> = line.split('\t').collect();
        let answer = match answer(&host, &mut open, &fields)? {
            Ok(text) => format!("ok\t{}", text.replace(['\n', '\t'], " ")),
            Err(code) => format!("error\t{code}"),
        };
        writeln!(out, "{answer}")?;
        out.flush()?;
    }
    Ok(())
}

fn answer(
    host: &RedisHost,
    open: &mut BTreeMap<String, RedisMemory>,
    fields: &[&str],
) -> wasmtime::Result<Result<String, String>> {
    let Some(name) = fields.get(1).copied() else {
        return Err(wasmtime::Error::msg("a line has a verb and a memory"));
    };
    if !open.contains_key(name) {
        if open.len() >= OPEN {
            open.clear();
        }
        let mut key = [0; 32];
        key[..name.len()].copy_from_slice(name.as_bytes());
        let options = OpenOptions {
            key: key.to_vec(),
            model: None,
            utc_offset_min: 0,
            policy: None,
        };
        match host.open(name, &options)? {
            Ok(memory) => open.insert(name.to_owned(), memory),
            Err(error) => return Ok(Err(code(&error).to_string())),
        };
    }
    let Some(memory) = open.get_mut(name) else {
        return Err(wasmtime::Error::msg("it was opened"));
    };
    let scope = Scope {
        user: name.to_owned(),
        project: None,
        thread: None,
        agent: None,
    };
    let answer = match fields {
        ["write", _, turn, text] => memory
            .ingest(&scope, ("thread", turn), text)?
            .map(|ids| ids.join(" ")),
        ["recall", _, query] => memory.recall(&scope, query)?.map(|prompt| prompt.text),
        _ => return Err(wasmtime::Error::msg("no such verb")),
    };
    Ok(answer.map_err(|error| code(&error).to_string()))
}
