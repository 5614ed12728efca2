//! The built component in a host that has nothing but the four interfaces of its world.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on"
)]

use std::collections::{BTreeMap, BTreeSet};

use foremind_component_tests::{
    Audience, Buckets, Error, Fault, ForgetTarget, Grade, Instance, OpenOptions, Prompt, Scope,
    World, code, component,
};
use foremind_memory::{Exposure, KeySource, Request, Response};
use foremind_testkit::{
    FakeWrapper, MemoryStore, NoEncoder, SeededAmbient, drive, open, open_with,
};
use foremind_types::{ErrorCode, Name, Role};
use wasmtime::component::ResourceAny;
use wasmtime::component::types::{ComponentItem, Type};

const ALLERGY: &str = "I'm allergic to tree nuts";
const QUERY: &str = "Any good macaron recipes?";
const KEY: [u8; 32] = [7; 32];
const BUCKET: &str = "ada";

fn options() -> OpenOptions {
    OpenOptions {
        key: KEY.to_vec(),
        model: None,
        utc_offset_min: 0,
        policy: None,
    }
}

fn scope(user: &str) -> Scope {
    Scope {
        user: user.to_owned(),
        project: None,
        thread: None,
        agent: None,
    }
}

/// An open memory in an instance of its own.
struct Desk {
    instance: Instance,
    memory: ResourceAny,
}

impl Desk {
    fn on(buckets: &Buckets, seed: u64) -> Self {
        Self::try_on(buckets, seed).unwrap()
    }

    fn try_on(buckets: &Buckets, seed: u64) -> Result<Self, Error> {
        let mut instance = Instance::new(buckets, seed).unwrap();
        let memory = instance.open(BUCKET, &options()).unwrap()?;
        Ok(Self { instance, memory })
    }

    fn remember(&mut self, text: &str) -> Result<Vec<String>, Error> {
        let (memory, ada) = (self.memory, scope("ada"));
        self.instance.remember(memory, &ada, text).unwrap()
    }

    fn recall(&mut self, query: &str) -> Prompt {
        let (memory, ada) = (self.memory, scope("ada"));
        self.instance
            .recall(memory, &ada, query, None)
            .unwrap()
            .unwrap()
    }

    /// The lines of the profile.
    fn told(&mut self) -> String {
        let (memory, ada) = (self.memory, scope("ada"));
        let prompt = self.instance.profile(memory, &ada, Some(4_096));
        prompt.unwrap().unwrap().text
    }

    fn forget(&mut self, id: &str) -> Result<u32, Error> {
        let (memory, ada) = (self.memory, scope("ada"));
        let target = ForgetTarget::Id(id.to_owned());
        self.instance.forget(memory, &ada, &target).unwrap()
    }
}

fn open_code(buckets: &Buckets, bucket: &str, options: &OpenOptions) -> ErrorCode {
    let mut instance = Instance::new(buckets, 50).unwrap();
    code(&instance.open(bucket, options).unwrap().unwrap_err())
}

#[test]
fn each_imports_the_interfaces_of_its_world_and_nothing_else() {
    let stores: [(World, &[&str]); 4] = [
        (
            World::Draft2,
            &[
                "wasi:keyvalue/atomics@0.2.0-draft2",
                "wasi:keyvalue/store@0.2.0-draft2",
            ],
        ),
        (
            World::Draft,
            &[
                "wasi:keyvalue/atomics@0.2.0-draft",
                "wasi:keyvalue/store@0.2.0-draft",
            ],
        ),
        (World::Spin, &["fermyon:spin/key-value@2.0.0"]),
        (
            World::Model,
            &[
                "wasi:keyvalue/atomics@0.2.0-draft2",
                "wasi:keyvalue/store@0.2.0-draft2",
            ],
        ),
    ];
    for (world, store) in stores {
        let (engine, component) = component(world).unwrap();
        let ty = component.component_type();
        let imports: BTreeSet<&str> = ty.imports(engine).map(|(name, _)| name).collect();
        let mut expected =
            BTreeSet::from(["wasi:clocks/wall-clock@0.2.0", "wasi:random/random@0.2.0"]);
        expected.extend(store);
        assert_eq!(imports, expected);
        let exports: Vec<&str> = ty.exports(engine).map(|(name, _)| name).collect();
        let own = [
            "types",
            "memories",
            "keys",
            "judge-queue",
            "erasure",
            "disclosure",
        ];
        let own: BTreeSet<String> = own
            .map(|name| format!("foremind:memory/{name}@0.1.0"))
            .into();
        let exports: BTreeSet<String> = exports.into_iter().map(str::to_owned).collect();
        assert_eq!(exports, own);
    }
}

#[test]
fn its_error_has_one_case_for_each_code() {
    let (engine, component) = component(World::Draft2).unwrap();
    let ty = component.component_type();
    let item = ty.exports(engine).find(|(name, _)| name.contains("types"));
    let ComponentItem::ComponentInstance(types) = item.unwrap().1.ty else {
        panic!("the export is no interface");
    };
    let Some(error) = types.get_export(engine, "error") else {
        panic!("the interface has no error");
    };
    let ComponentItem::Type(Type::Variant(error)) = error.ty else {
        panic!("the error is no variant");
    };
    let cases: Vec<String> = error.cases().map(|case| case.name.to_owned()).collect();
    let codes: Vec<&str> = ErrorCode::ALL.iter().map(|code| code.as_str()).collect();
    assert_eq!(cases, codes);
    assert!(error.cases().all(|case| case.ty == Some(Type::String)));
}

#[test]
fn what_was_told_is_there_in_a_new_instance() {
    let buckets = Buckets::default();
    let mut desk = Desk::on(&buckets, 1);
    let ids = desk.remember(ALLERGY).unwrap();
    assert_eq!(ids.len(), 1);
    desk.remember("Shelf 3 of the pantry holds 21 jars")
        .unwrap();
    drop(desk);
    let mut later = Desk::on(&buckets, 2);
    let prompt = later.recall(QUERY);
    assert_eq!(prompt.profile, ids);
    assert!(
        prompt
            .text
            .contains("allergy: \"I'm allergic to tree nuts\"")
    );
    assert!(prompt.tokens > 0 && prompt.tokens <= 512);
    assert!(prompt.lexical_only);
    assert_eq!(later.recall("pantry jars").context.len(), 1);
    // The bucket shows nothing of it.
    for value in buckets.values(BUCKET).values() {
        assert!(!value.windows(9).any(|window| window == b"tree nuts"));
    }
    // Nor does another user's scope.
    let memory = later.memory;
    let bob = later.instance.recall(memory, &scope("bob"), QUERY, None);
    assert_eq!(bob.unwrap().unwrap().text, "");
}

#[test]
fn the_native_engine_stores_and_renders_the_same() {
    let buckets = Buckets::default();
    let mut desk = Desk::on(&buckets, 9);
    let (mut store, mut ambient) = (MemoryStore::without_atomic_batches(), SeededAmbient::new(9));
    let mut memory = open(KEY, &mut store, &mut ambient).unwrap();
    let ada = || foremind_types::Scope::user(Name::new("ada").unwrap());
    // More than the loose entries of one level, so that a commit folds.
    for number in 0..40 {
        let text = match number {
            0 => ALLERGY.to_owned(),
            1 => "I don't eat pork".to_owned(),
            2 => "My <b>kitchen</b> has a \"marble\"\ncounter".to_owned(),
            _ => format!("Shelf {number} of the pantry holds {} jars", number * 7),
        };
        let there = desk.remember(&text).unwrap();
        let request = Request::Remember {
            scope: ada(),
            text,
            role: Role::User,
            thread: None,
            turn: None,
            tier: None,
        };
        let here = drive(
            &mut memory,
            request,
            &mut store,
            &mut NoEncoder,
            &mut ambient,
        );
        let Response::Remember { records } = here.unwrap() else {
            panic!("not what was asked");
        };
        let here: Vec<String> = records
            .iter()
            .map(|one| one.record.id.to_string())
            .collect();
        assert_eq!(there, here);
    }
    for query in [QUERY, "marble counter", "how many jars are in the pantry?"] {
        let there = desk.recall(query);
        let request = Request::Recall {
            audience: foremind_memory::Audience::Device,
            deadline_ms: None,
            explain: false,
            as_of_ms: None,
            exposure: Exposure::Full,
            scope: ada(),
            query: query.to_owned(),
            budget_tokens: 512,
        };
        let here = drive(
            &mut memory,
            request,
            &mut store,
            &mut NoEncoder,
            &mut ambient,
        );
        let Response::Recall(here) = here.unwrap() else {
            panic!("not what was asked");
        };
        assert_eq!(there.text, here.prompt);
        assert_eq!(there.tokens, here.tokens);
        assert!(there.text.contains(ALLERGY));
    }
    let here: BTreeMap<String, Vec<u8>> = store
        .values()
        .iter()
        .map(|(key, value)| (key.to_string(), value.clone()))
        .collect();
    assert!(buckets.values(BUCKET) == here, "the stored bytes differ");
}

#[test]
fn two_instances_that_write_at_once_lose_nothing() {
    let buckets = Buckets::default();
    let mut first = Desk::on(&buckets, 1);
    let mut second = Desk::on(&buckets, 2);
    first.remember(ALLERGY).unwrap();
    // The second writes after the first has read the head and before it swaps it, twice.
    let mut texts = vec!["I don't eat pork", "I'm on warfarin"];
    first.instance.host().before_swap(move || {
        second.remember(texts.remove(0)).unwrap();
        !texts.is_empty()
    });
    first.remember("I have celiac disease").unwrap();
    assert_eq!(buckets.conflicts(), 2);
    let mut fresh = Desk::on(&buckets, 3);
    for told in [first.told(), fresh.told()] {
        for text in [ALLERGY, "pork", "warfarin", "celiac"] {
            assert!(told.contains(text), "{text} is lost: {told}");
        }
    }
    // What the conflicts left behind is deleted: key, its spare, head, profile, and one value for each of four entries.
    assert_eq!(buckets.values(BUCKET).len(), 8);
}

#[test]
fn two_instances_that_make_the_memory_at_once_share_it() {
    let buckets = Buckets::default();
    let mut first = Instance::new(&buckets, 1).unwrap();
    let at = buckets.clone();
    first.host().before_swap(move || {
        // The first has written its key and not yet its head.
        Desk::on(&at, 2).remember(ALLERGY).unwrap();
        false
    });
    let memory = first.open(BUCKET, &options()).unwrap().unwrap();
    let told = first.profile(memory, &scope("ada"), None).unwrap().unwrap();
    assert!(told.text.contains(ALLERGY));
}

#[test]
fn a_host_that_dies_at_any_write_costs_nothing_that_was_acknowledged() {
    let story = |buckets: &Buckets| -> BTreeSet<&str> {
        let mut kept = BTreeSet::new();
        let Ok(mut desk) = Desk::try_on(buckets, 1) else {
            return kept;
        };
        let Ok(ids) = desk.remember("I'm on warfarin") else {
            return kept;
        };
        kept.insert("warfarin");
        if desk.remember(ALLERGY).is_err() {
            return kept;
        }
        kept.insert("tree nuts");
        // From here on, in doubt until it is acknowledged.
        kept.remove("warfarin");
        if desk.forget(&ids[0]).is_ok() {
            kept.insert("forgotten");
        }
        kept
    };
    let whole = Buckets::default();
    whole.fail(None);
    assert_eq!(story(&whole), BTreeSet::from(["tree nuts", "forgotten"]));
    let writes = whole.writes();
    // key, head; two for each text; the rewritten entry, the erasure, the head, the deletion.
    assert!(writes >= 9, "{writes}");
    for number in 0..writes {
        for fault in [Fault::Before(number), Fault::After(number)] {
            let buckets = Buckets::default();
            buckets.fail(Some(fault));
            let kept = story(&buckets);
            buckets.fail(None);
            let mut fresh = Desk::on(&buckets, 2);
            let told = fresh.told();
            for text in kept.iter().filter(|text| **text != "forgotten") {
                assert!(told.contains(text), "{fault:?}: {text} is lost: {told}");
            }
            assert!(
                !(kept.contains("forgotten") && told.contains("warfarin")),
                "{fault:?}: {told}"
            );
            fresh.remember("I don't eat pork").unwrap();
            assert!(Desk::on(&buckets, 3).told().contains("pork"));
        }
    }
}

#[test]
fn what_is_forgotten_is_gone() {
    let buckets = Buckets::default();
    let mut desk = Desk::on(&buckets, 1);
    let ids = desk.remember(ALLERGY).unwrap();
    assert_eq!(desk.forget(&ids[0]).unwrap(), 1);
    assert_eq!(Desk::on(&buckets, 2).recall(QUERY).text, "");
    let again = desk.forget(&ids[0]).unwrap_err();
    assert_eq!(code(&again), ErrorCode::UnknownId);
    let (memory, ada) = (desk.memory, scope("ada"));
    desk.remember("I don't eat pork").unwrap();
    let everything = desk.instance.forget(memory, &ada, &ForgetTarget::Scope);
    assert_eq!(everything.unwrap().unwrap(), 1);
}

#[test]
fn a_turn_that_is_told_twice_is_there_once() {
    let buckets = Buckets::default();
    let mut desk = Desk::on(&buckets, 1);
    let (memory, ada) = (desk.memory, scope("ada"));
    let turn = ("thread-1", "turn-1");
    let first = desk.instance.ingest(memory, &ada, turn, ALLERGY);
    let first = first.unwrap().unwrap();
    assert_eq!(first.len(), 1);
    // Elsewhere, by who did not hear that it was stored.
    let mut other = Desk::on(&buckets, 2);
    let again = other.instance.ingest(other.memory, &ada, turn, ALLERGY);
    assert_eq!(again.unwrap().unwrap(), first);
    assert_eq!(other.recall(QUERY).profile, first);
    for turn in [("", "1"), ("a b", "1"), ("t", "-1")] {
        let refused = other.instance.ingest(other.memory, &ada, turn, ALLERGY);
        assert_eq!(
            code(&refused.unwrap().unwrap_err()),
            ErrorCode::InvalidArgument
        );
    }
}

#[test]
fn after_a_change_of_keys_the_new_one_opens_the_memory() {
    let buckets = Buckets::default();
    let mut desk = Desk::on(&buckets, 1);
    desk.remember(ALLERGY).unwrap();
    let memory = desk.memory;
    let short = desk.instance.rekey(memory, &[8; 31]).unwrap().unwrap_err();
    assert_eq!(code(&short), ErrorCode::InvalidArgument);
    desk.instance.rekey(memory, &[8; 32]).unwrap().unwrap();
    // Who has it open goes on.
    desk.remember("I don't eat pork").unwrap();
    assert_eq!(open_code(&buckets, BUCKET, &options()), ErrorCode::WrongKey);
    let mut instance = Instance::new(&buckets, 3).unwrap();
    let new = OpenOptions {
        key: vec![8; 32],
        ..options()
    };
    let memory = instance.open(BUCKET, &new).unwrap().unwrap();
    let prompt = instance.profile(memory, &scope("ada"), Some(4_096));
    let text = prompt.unwrap().unwrap().text;
    assert!(text.contains(ALLERGY) && text.contains("pork"), "{text}");
}

#[test]
fn what_is_in_doubt_waits_for_a_judgement() {
    let buckets = Buckets::default();
    let mut desk = Desk::on(&buckets, 1);
    let (memory, ada) = (desk.memory, scope("ada"));
    for food in ["shellfish", "peanuts", "sesame"] {
        // Whose allergy it is leaves it in doubt.
        desk.remember(&format!("My boyfriend is allergic to {food}."))
            .unwrap();
    }
    let (waiting, count) = desk.instance.pending(memory, &ada).unwrap().unwrap();
    assert_eq!((waiting.len(), count), (3, 3));
    let one = &waiting[0];
    assert!(one.text.contains("boyfriend"));
    let bob = desk
        .instance
        .judge(memory, &scope("bob"), &one.id, Grade::Modifier);
    assert_eq!(code(&bob.unwrap().unwrap_err()), ErrorCode::UnknownId);
    let judge = |desk: &mut Desk| desk.instance.judge(memory, &ada, &one.id, Grade::Modifier);
    judge(&mut desk).unwrap().unwrap();
    assert!(desk.told().contains(&one.text));
    let again = judge(&mut desk).unwrap().unwrap_err();
    assert_eq!(code(&again), ErrorCode::InvalidArgument);
    let (_, count) = desk.instance.pending(memory, &ada).unwrap().unwrap();
    assert_eq!(count, 2);
}

#[test]
fn only_its_key_opens_a_memory() {
    let buckets = Buckets::default();
    Desk::on(&buckets, 1).remember(ALLERGY).unwrap();
    let before = buckets.values(BUCKET);
    let with = |key: Vec<u8>| OpenOptions { key, ..options() };
    let wrong = open_code(&buckets, BUCKET, &with(vec![8; 32]));
    assert_eq!(wrong, ErrorCode::WrongKey);
    for bytes in [0, 31, 33] {
        let short = open_code(&buckets, BUCKET, &with(vec![7; bytes]));
        assert_eq!(short, ErrorCode::InvalidArgument);
    }
    assert_eq!(buckets.values(BUCKET), before);
}

#[test]
fn unusable_arguments_are_errors_of_their_own() {
    let buckets = Buckets::default();
    let mut desk = Desk::on(&buckets, 1);
    let (memory, ada) = (desk.memory, scope("ada"));
    let remember = |desk: &mut Desk, text: &str| code(&desk.remember(text).unwrap_err());
    assert_eq!(remember(&mut desk, ""), ErrorCode::TextEmpty);
    assert_eq!(remember(&mut desk, " \n\t"), ErrorCode::TextEmpty);
    let long = "word ".repeat(1_000_000);
    assert_eq!(remember(&mut desk, &long), ErrorCode::TextTooLarge);
    for budget in [0, u32::MAX] {
        let prompt = desk.instance.recall(memory, &ada, QUERY, Some(budget));
        assert_eq!(
            code(&prompt.unwrap().unwrap_err()),
            ErrorCode::InvalidArgument
        );
    }
    for user in ["", "a b", "-a"] {
        let prompt = desk.instance.recall(memory, &scope(user), QUERY, None);
        assert_eq!(
            code(&prompt.unwrap().unwrap_err()),
            ErrorCode::InvalidArgument
        );
    }
    assert_eq!(
        code(&desk.forget("no id").unwrap_err()),
        ErrorCode::InvalidArgument
    );
    let unknown = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
    assert_eq!(
        code(&desk.forget(unknown).unwrap_err()),
        ErrorCode::UnknownId
    );
    let offset = OpenOptions {
        utc_offset_min: 1_441,
        policy: None,
        ..options()
    };
    let offset = open_code(&buckets, BUCKET, &offset);
    assert_eq!(offset, ErrorCode::InvalidArgument);
    // The instance works on.
    desk.remember(ALLERGY).unwrap();
}

#[test]
fn a_model_that_cannot_be_used_is_refused_before_anything_is_written() {
    let buckets = Buckets::default();
    let model = OpenOptions {
        model: Some(b"not a model".to_vec()),
        ..options()
    };
    // A build without the embedder takes no model at all, one with it not this one.
    let refused = open_code(&buckets, BUCKET, &model);
    assert!(
        matches!(refused, ErrorCode::Unsupported | ErrorCode::ModelInvalid),
        "{refused}"
    );
    assert!(buckets.values(BUCKET).is_empty());
}

#[test]
fn a_store_that_is_denied_lost_altered_or_newer_is_told_apart_and_never_empty() {
    let buckets = Buckets::default();
    for bucket in ["denied", ""] {
        let denied = open_code(&buckets, bucket, &options());
        assert_eq!(denied, ErrorCode::StorageDenied);
    }
    buckets.fail(Some(Fault::Before(0)));
    let failed = open_code(&buckets, BUCKET, &options());
    assert_eq!(failed, ErrorCode::StorageFailed);
    buckets.fail(None);

    let mut desk = Desk::on(&buckets, 1);
    desk.remember(ALLERGY).unwrap();
    let whole = buckets.values(BUCKET);
    // The spare of the key and the stored profile are not needed to open: without them everything is there.
    let mut needless = 0;
    for name in whole.keys() {
        let without = Buckets::with(BUCKET, whole.clone());
        without.tamper(BUCKET, |values| {
            values.remove(name);
        });
        if let Ok(mut desk) = Desk::try_on(&without, 2) {
            assert!(desk.told().contains(ALLERGY));
            needless += 1;
            continue;
        }
        let altered = Buckets::with(BUCKET, whole.clone());
        altered.tamper(BUCKET, |values| {
            let value = values.get_mut(name).unwrap();
            let last = value.len() - 1;
            value[last] ^= 1;
        });
        let code = open_code(&altered, BUCKET, &options());
        assert_eq!(code, ErrorCode::Corrupt, "{name} altered");
        let halved = Buckets::with(BUCKET, whole.clone());
        halved.tamper(BUCKET, |values| {
            values.remove(name);
        });
        let code = open_code(&halved, BUCKET, &options());
        assert_eq!(code, ErrorCode::Corrupt, "{name} removed");
    }
    assert_eq!(needless, 2);
    // Deleted under an open memory.
    buckets.tamper(BUCKET, BTreeMap::clear);
    let lost = desk.remember("I don't eat pork").unwrap_err();
    assert_eq!(code(&lost), ErrorCode::StorageLost);
}

#[test]
fn a_memory_of_a_platform_key_needs_that_key() {
    let mut store = MemoryStore::default();
    let external = foremind_memory::OpenOptions::new(KeySource::External);
    let mut ambient = SeededAmbient::new(1);
    open_with(external, FakeWrapper(1), &mut store, &mut ambient).unwrap();
    let values = store.values().iter();
    let values = values.map(|(key, value)| (key.to_string(), value.clone()));
    let buckets = Buckets::with(BUCKET, values.collect());
    let other = open_code(&buckets, BUCKET, &options());
    assert_eq!(other, ErrorCode::WrongKey);
}

#[test]
fn writers_that_are_always_faster_end_in_a_conflict_that_changed_nothing() {
    let buckets = Buckets::default();
    let mut slow = Desk::on(&buckets, 1);
    let mut fast = Desk::on(&buckets, 2);
    let mut number = 0;
    slow.instance.host().before_swap(move || {
        number += 1;
        fast.remember(&format!("Shelf {number} holds jars"))
            .unwrap();
        true
    });
    let error = slow.remember(ALLERGY).unwrap_err();
    assert_eq!(code(&error), ErrorCode::Conflict);
    let mut fresh = Desk::on(&buckets, 3);
    assert!(!fresh.told().contains(ALLERGY));
    assert!(!fresh.recall("which shelf holds jars?").context.is_empty());
}

#[test]
fn an_erasure_is_proven_and_what_is_put_back_speaks_against_it() {
    let buckets = Buckets::default();
    let mut desk = Desk::on(&buckets, 1);
    let (memory, ada) = (desk.memory, scope("ada"));
    let ids = desk.remember(ALLERGY).unwrap();
    desk.remember("My sister Nora lives in Lisbon").unwrap();
    let before = buckets.values(BUCKET);
    let target = ForgetTarget::Id(ids[0].clone());
    let shown = desk.instance.preview(memory, &ada, &target);
    assert_eq!(shown.unwrap().unwrap(), ids);
    assert!(desk.told().contains("tree nuts"));
    let (erased, receipt) = desk.instance.erase(memory, &ada, &target).unwrap().unwrap();
    assert_eq!(erased, 1);
    let receipt = receipt.unwrap();
    assert_eq!(receipt.counts.records, 1);
    let verified = desk.instance.verify(memory, Some(&receipt));
    let check = verified.unwrap().unwrap().receipt.unwrap();
    assert!(check.holds && check.chain, "{check:?}");
    assert_eq!((check.found, check.root), (0, Some(true)));
    // Another receipt, or none.
    let altered = foremind_component_tests::Receipt {
        at_ms: receipt.at_ms + 1,
        ..receipt.clone()
    };
    let verified = desk.instance.verify(memory, Some(&altered));
    assert!(!verified.unwrap().unwrap().receipt.unwrap().holds);
    let malformed = foremind_component_tests::Receipt {
        root: "00".to_owned(),
        ..receipt.clone()
    };
    let refused = desk.instance.verify(memory, Some(&malformed)).unwrap();
    assert_eq!(code(&refused.unwrap_err()), ErrorCode::InvalidArgument);
    let whole = desk.instance.verify(memory, None).unwrap().unwrap();
    assert!(whole.whole && whole.receipt.is_none());

    // The end of it all.
    let end = desk.instance.destroy(memory, &KEY).unwrap().unwrap();
    assert_eq!(end.counts.records, 1);
    assert!(
        desk.instance
            .recall(memory, &ada, QUERY, None)
            .unwrap()
            .is_err()
    );
    let mut later = Instance::new(&buckets, 2).unwrap();
    let verified = later.verify_end(BUCKET, &KEY, &end).unwrap().unwrap();
    assert!(verified.receipt.unwrap().holds);
    buckets.tamper(BUCKET, |values| *values = before);
    let verified = later.verify_end(BUCKET, &KEY, &end).unwrap().unwrap();
    assert!(!verified.receipt.unwrap().holds);
}

#[test]
fn a_prompt_for_elsewhere_has_placeholders_that_an_answer_gives_back() {
    let buckets = Buckets::default();
    let mut desk = Desk::on(&buckets, 1);
    let (memory, ada) = (desk.memory, scope("ada"));
    desk.remember(ALLERGY).unwrap();
    desk.remember("I am allergic to penicillin, my sister Nora Lindqvist found out")
        .unwrap();
    let device = desk
        .instance
        .disclose_profile(memory, &ada, Audience::Device)
        .unwrap()
        .unwrap();
    assert!(device.prompt.text.contains("Nora Lindqvist"));
    assert!(device.pseudonyms.is_empty());
    let query = "What may I take against an infection?";
    let remote = desk
        .instance
        .disclose(memory, &ada, query, Audience::Remote)
        .unwrap()
        .unwrap();
    assert!(
        !remote.prompt.text.contains("Nora"),
        "{}",
        remote.prompt.text
    );
    assert!(remote.prompt.text.contains("penicillin"));
    let one = &remote.pseudonyms[0];
    let answer = format!("Tell {} to ask the doctor.", one.placeholder);
    let restored = desk.instance.restore(&answer, &remote.pseudonyms).unwrap();
    assert_eq!(restored, format!("Tell {} to ask the doctor.", one.text));
}
