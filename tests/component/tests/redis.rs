//! Three hosts on one Redis, killed at random: nothing that was acknowledged is lost, and no memory shows another's.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test that cannot go on, or says why it does not begin"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use foremind_component_tests::World;
use foremind_component_tests::redis::{Redis, precompile};
use foremind_memory::{Key, Request, Response};
use foremind_testkit::{MemoryStore, NoEncoder, SeededAmbient, drive, open};
use foremind_types::{Name, Scope};

const HOSTS: usize = 3;

/// How much is done.
struct Load {
    memories: u64,
    writes: u64,
    recalls: u64,
    /// Least and most milliseconds between two kills.
    kill_ms: (u64, u64),
}

/// A Redis of this test's own, in a folder of its own, that keeps nothing.
struct Server {
    child: Child,
    folder: PathBuf,
}

impl Server {
    /// None where the machine has no `redis-server`.
    fn start() -> Option<Self> {
        let program = std::env::var_os("FOREMIND_REDIS").unwrap_or_else(|| "redis-server".into());
        // Short: the path of a socket has about a hundred bytes.
        let folder = PathBuf::from(format!("/tmp/foremind-redis-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let child = Command::new(&program)
            .args([
                "--port",
                "0",
                "--save",
                "",
                "--appendonly",
                "no",
                "--unixsocket",
            ])
            .arg(folder.join("socket"))
            .arg("--dir")
            .arg(&folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn();
        let Ok(child) = child else {
            eprintln!(
                "SKIPPED: {} does not start; install redis-server, or name it in FOREMIND_REDIS",
                program.to_string_lossy()
            );
            let _ = std::fs::remove_dir_all(&folder);
            return None;
        };
        let server = Self { child, folder };
        for _ in 0..200 {
            if Redis::connect(&server.socket()).is_ok() {
                return Some(server);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("redis-server was started and cannot be reached");
    }

    fn socket(&self) -> PathBuf {
        self.folder.join("socket")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// A host process; whoever holds the lock may kill it.
struct Host {
    child: Arc<Mutex<Child>>,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Host {
    fn start(socket: &Path, machine_code: &Path, slot: &Mutex<Option<Arc<Mutex<Child>>>>) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_redis-host"))
            .arg(socket)
            .arg(machine_code)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let child = Arc::new(Mutex::new(child));
        *slot.lock().unwrap() = Some(Arc::clone(&child));
        Self {
            child,
            input,
            output,
        }
    }

    /// None: it died before it answered.
    fn ask(&mut self, line: &str) -> Option<String> {
        writeln!(self.input, "{line}").ok()?;
        self.input.flush().ok()?;
        let mut answer = String::new();
        self.output.read_line(&mut answer).ok()?;
        // Half a line is no answer.
        answer.strip_suffix('\n').map(str::to_owned)
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let mut child = self.child.lock().unwrap();
        let _ = child.kill();
        let _ = child.wait();
    }
}

/// Numbers from a seed (SplitMix64).
struct Draws(u64);

impl Draws {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (word ^ (word >> 31)) % bound
    }
}

/// What a memory is told in a turn: nothing that another memory is told.
fn text(memory: &str, turn: &str) -> String {
    format!("Locker {turn} of {memory} holds blue paint")
}

/// What one worker has to say afterwards: the acknowledged turns by memory, and how often its host died.
#[derive(Default)]
struct Ledger {
    told: BTreeMap<String, Vec<String>>,
    deaths: u32,
    conflicts: u32,
    recalls: u64,
}

fn work(
    worker: usize,
    load: &Load,
    socket: &Path,
    machine_code: &Path,
    slot: &Mutex<Option<Arc<Mutex<Child>>>>,
) -> Ledger {
    let mut draws = Draws(worker as u64 + 1);
    let mut ledger = Ledger::default();
    let mut host = Host::start(socket, machine_code, slot);
    let mut ask = |ledger: &mut Ledger, line: &str| loop {
        match host
            .ask(line)
            .as_deref()
            .map(|answer| answer.split_once('\t'))
        {
            Some(Some(("ok", text))) => return text.to_owned(),
            // Other hosts were faster too many times, and nothing was changed.
            Some(Some(("error", "conflict"))) => ledger.conflicts += 1,
            Some(answer) => panic!("{line}: {answer:?}"),
            None => {
                ledger.deaths += 1;
                host = Host::start(socket, machine_code, slot);
            }
        }
    };
    let share = |all: u64| all / HOSTS as u64;
    let (mut writes, mut recalls) = (share(load.writes), share(load.recalls));
    let mut next: u64 = 0;
    while writes + recalls > 0 {
        if draws.below(writes + recalls) < writes {
            writes -= 1;
            let memory = format!("m{}", draws.below(load.memories));
            next += 1;
            // Of one worker, so that no two tell the same; a retry after a death is the same turn.
            let turn = ((worker as u64 + 1) * 100_000 + next).to_string();
            let told = text(&memory, &turn);
            ask(&mut ledger, &format!("write\t{memory}\t{turn}\t{told}"));
            ledger.told.entry(memory).or_default().push(turn);
        } else {
            recalls -= 1;
            ledger.recalls += 1;
            let known: Vec<&String> = ledger.told.keys().collect();
            if known.is_empty() {
                continue;
            }
            let memory = known[draws.below(known.len() as u64) as usize].clone();
            let turns = &ledger.told[&memory];
            let turn = turns[draws.below(turns.len() as u64) as usize].clone();
            let shown = ask(
                &mut ledger,
                &format!("recall\t{memory}\tWhat is in locker {turn}?"),
            );
            let told = text(&memory, &turn);
            assert!(
                shown.contains(&told),
                "{told} was acknowledged and is not shown: {shown}"
            );
            for other in shown.split("Locker ").skip(1) {
                let of = other.split_whitespace().nth(2);
                assert_eq!(of, Some(memory.as_str()), "{shown}");
            }
        }
    }
    ledger
}

/// All that the memory holds, by the native engine on what the Redis holds.
fn stored(redis: &mut Redis, memory: &str) -> Vec<String> {
    let prefix = format!("{memory}/");
    let (mut values, mut cursor) = (BTreeMap::new(), Some("0".to_owned()));
    while let Some(from) = cursor {
        let (names, next) = redis.scan(&prefix, &from).unwrap();
        cursor = next;
        for name in names {
            let value = redis.get(&name).unwrap().unwrap();
            // What a killed host left behind and nothing names is no part of the memory.
            if let Some(key) = Key::parse(&name[prefix.len()..]) {
                values.insert(key, value);
            }
        }
    }
    let mut store = MemoryStore::with_values(values);
    let mut ambient = SeededAmbient::new(1);
    let mut key = [0; 32];
    key[..memory.len()].copy_from_slice(memory.as_bytes());
    let mut opened = open(key, &mut store, &mut ambient).unwrap();
    let request = Request::List {
        scope: Scope::user(Name::new(memory).unwrap()),
        tier: None,
        status: None,
        domain: None,
        limit: 1_000,
        after: None,
    };
    let listed = drive(
        &mut opened,
        request,
        &mut store,
        &mut NoEncoder,
        &mut ambient,
    );
    let Response::List(listing) = listed.unwrap() else {
        panic!("not what was asked");
    };
    listing
        .records
        .into_iter()
        .map(|record| record.text)
        .collect()
}

#[test]
fn hosts_that_are_killed_lose_nothing_that_was_acknowledged() {
    let long = std::env::var("FOREMIND_LONG").is_ok_and(|value| value == "1");
    let load = if long {
        Load {
            memories: 1_000,
            writes: 10_000,
            recalls: 10_000,
            kill_ms: (1_000, 4_000),
        }
    } else {
        Load {
            memories: 10,
            writes: 150,
            recalls: 150,
            kill_ms: (150, 500),
        }
    };
    let Some(server) = Server::start() else {
        return;
    };
    let machine_code = server.folder.join("component");
    precompile(World::Draft2, &machine_code).unwrap();
    let socket = server.socket();
    let slots: [Mutex<Option<Arc<Mutex<Child>>>>; HOSTS] = Default::default();
    let (over, kills) = (AtomicBool::new(false), AtomicU32::new(0));
    let ledgers: Vec<Ledger> = std::thread::scope(|scope| {
        let workers: Vec<_> = slots
            .iter()
            .enumerate()
            .map(|(worker, slot)| {
                let (load, socket, machine_code) = (&load, &socket, &machine_code);
                scope.spawn(move || work(worker, load, socket, machine_code, slot))
            })
            .collect();
        scope.spawn(|| {
            let mut draws = Draws(99);
            while !over.load(Ordering::Relaxed) {
                let (least, most) = load.kill_ms;
                let wait_ms = least + draws.below(most - least);
                for _ in 0..wait_ms.div_ceil(20) {
                    if over.load(Ordering::Relaxed) {
                        return;
                    }
                    std::thread::sleep(Duration::from_millis(20));
                }
                let slot = slots[draws.below(HOSTS as u64) as usize]
                    .lock()
                    .unwrap()
                    .clone();
                if let Some(child) = slot {
                    // SIGKILL: it has no say in it.
                    let _ = child.lock().unwrap().kill();
                    kills.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
        let ledgers = workers
            .into_iter()
            .map(|worker| worker.join())
            .collect::<Vec<_>>();
        over.store(true, Ordering::Relaxed);
        ledgers.into_iter().map(Result::unwrap).collect()
    });
    let sum = |of: fn(&Ledger) -> u32| ledgers.iter().map(of).sum::<u32>();
    let (deaths, conflicts) = (sum(|ledger| ledger.deaths), sum(|ledger| ledger.conflicts));
    let mut told: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (memory, turns) in ledgers.iter().flat_map(|ledger| &ledger.told) {
        let all = told.entry(memory).or_default();
        all.extend(turns.iter().map(String::as_str));
    }
    let recalls: u64 = ledgers.iter().map(|ledger| ledger.recalls).sum();
    let writes: usize = told.values().map(Vec::len).sum();
    eprintln!(
        "{writes} writes and {recalls} recalls on {} memories, {} kills, {deaths} hosts died, {conflicts} conflicts",
        told.len(),
        kills.load(Ordering::Relaxed),
    );
    assert!(deaths > 0, "nobody was killed while it worked");
    assert_eq!(writes as u64, load.writes / HOSTS as u64 * HOSTS as u64);
    let mut connection = Redis::connect(&server.socket()).unwrap();
    for (memory, turns) in told {
        let found = stored(&mut connection, memory);
        let there: BTreeSet<&str> = found.iter().map(String::as_str).collect();
        assert_eq!(there.len(), found.len(), "{memory} holds something twice");
        let expected: BTreeSet<String> = turns.iter().map(|turn| text(memory, turn)).collect();
        let expected: BTreeSet<&str> = expected.iter().map(String::as_str).collect();
        assert_eq!(there, expected, "{memory}");
    }
}
