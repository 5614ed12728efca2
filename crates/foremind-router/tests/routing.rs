//! The lexical stage, from the outside: what each kind of statement becomes, and why.

#![allow(clippy::panic)]

use expect_test::{Expect, expect};
use foremind_guard::{Guard, Guarded, Verdict};
use foremind_router::{Keep, Router, Routing};
use foremind_types::limits::{STATEMENT_BYTES, STATEMENTS_PER_TURN};
use foremind_types::{Ambient, Domain, Grade, Judgement, Severity, Subject, Tier, Ttl};
use proptest::prelude::*;

/// Sunday, 29 November 2026, 10:00 UTC.
const TOLD: Ambient = Ambient {
    now_ms: 1_795_946_400_000,
    utc_offset_min: 0,
    entropy: [0; 32],
};

fn guarded(text: &str) -> Guarded {
    let Ok(Verdict::Accept(text)) = Guard::new().statement(text) else {
        panic!("the guard refuses {text:?}");
    };
    text
}

fn route(text: &str) -> Routing {
    Router::new().route(&guarded(text), &TOLD)
}

/// The only place where a case meets the API: tier, judgement, domain and subject, then every reason.
fn check(text: &str, expected: Expect) {
    let routing = route(text);
    let route = &routing.route;
    let mut shown = format!(
        "{} {} {} {}",
        route.tier.as_str(),
        route.judgement.as_str(),
        route.domain.as_str(),
        routing.subject.as_str()
    );
    for reason in &route.reasons {
        shown += &format!("\n{} [{}] {}", reason.signal, reason.matched, reason.weight);
    }
    expected.assert_eq(&shown);
}

fn tier(text: &str) -> Tier {
    route(text).route.tier
}

fn all(expected: Tier, texts: &[&str]) {
    let router = Router::new();
    let wrong: Vec<_> = texts
        .iter()
        .filter(|t| router.route(&guarded(t), &TOLD).route.tier != expected)
        .collect();
    assert!(wrong.is_empty(), "not {}: {wrong:#?}", expected.as_str());
}

#[test]
fn signals_are_named_with_their_words() {
    check(
        "I'm allergic to tree nuts",
        expect![[r#"
            profile settled allergy owner
            medical-word [allergic to] 0.85
            kind-nut-allergy [tree nuts] 0"#]],
    );
    check(
        "I don't eat pork",
        expect![[r#"
            profile settled diet owner
            negation-noun [don't eat pork] 0.9
            kind-no-pork [don't eat pork] 0"#]],
    );
    check(
        "I was prescribed metformin.",
        expect![[r#"
            profile settled medication owner
            medication-name [prescribed] 0.85
            medication-name [metformin] 0.85
            kind-metformin [metformin] 0"#]],
    );
    check(
        "I'm here on a work permit",
        expect![[r#"
            profile settled immigration owner
            legal-word [work permit] 0.8
            kind-h1b [work permit] 0"#]],
    );
}

#[test]
fn traps_are_named_beside_what_they_hold() {
    check(
        "My neighbour is diabetic",
        expect![[r#"
            store unrouted condition other
            medical-word [diabetic] 0
            trap-other-person [neighbour] 0"#]],
    );
    check(
        "I'm allergic to Mondays",
        expect![[r#"
            store unrouted general owner
            trap-idiom [allergic to] 0"#]],
    );
    check(
        "What if I were diabetic?",
        expect![[r#"
            store unrouted condition owner
            medical-word [diabetic] 0
            trap-hypothetical [What if] 0"#]],
    );
}

#[test]
fn what_changes_answers_goes_to_the_profile() {
    all(
        Tier::Profile,
        &[
            "I can't have dairy.",
            "I have hypertension.",
            "I'm on warfarin.",
            "I signed an NDA with my employer.",
            "My work is covered by HIPAA.",
            "I must avoid grapefruit.",
            "We never eat shellfish.",
            "I'm vegan, by the way",
            "I'm pregnant",
            "i dont eat meat",
            "I have a pacemaker",
            "I use a wheelchair",
            "My visa doesn't let me work",
            "My landlord forbids drilling",
            "I have two cats",
            "Type 1 diabetic.",
            "From now on, answer in metric units only",
            "I CAN’T EAT GLUTEN",
            "I\u{200b}'m aller\u{ad}gic to bees",
        ],
    );
}

#[test]
fn questions_that_state_a_fact_go_in_and_others_stay_out() {
    all(
        Tier::Profile,
        &[
            "Which cheeses can I eat given that my doctor has me on under 2 g sodium?",
            "Can I take ibuprofen since I'm on warfarin?",
            "What can I cook with my nut allergy?",
        ],
    );
    all(
        Tier::Store,
        &[
            "What is a nut allergy?",
            "Do I need a visa for Japan?",
            "Is metformin safe?",
            "How do people live with asthma?",
            "Can you recommend some vegan recipes?",
        ],
    );
}

#[test]
fn what_is_not_said_of_the_owner_stays_out() {
    all(
        Tier::Store,
        &[
            // hypothetical, resolved, negated
            "If I were diabetic, would you still recommend it?",
            "Imagine I'm allergic to gold.",
            "I used to be diabetic but it's gone.",
            "I'm no longer vegetarian.",
            "No allergies here.",
            "I don't have asthma.",
            // fiction, quotation, homework
            "My character is allergic to iron.",
            "Translate into Japanese: 'I am allergic to buckwheat.'",
            "I'm writing an essay about epilepsy.",
            // metaphor and homonym
            "I got a visa card with a heron on it.",
            "I'm nuts about trains.",
            "My new flat has blinds.",
            // others
            "My boss can't eat gluten.",
            "A friend of mine is on lithium.",
            "The guy who cuts my hair is deaf.",
            "Our neighbour's son has asthma.",
            // ordinary talk
            "I love cooking Italian food.",
            "I went to the museum yesterday.",
            "Thanks, that's helpful!",
            "I don't like mushrooms.",
            "I can't wait to see it.",
        ],
    );
}

#[test]
fn those_in_care_and_lasting_events_go_in_and_wait_for_a_judge() {
    for text in [
        "My son can't have gluten.",
        "Our cat is diabetic.",
        "My daughter has epilepsy and she can't swim.",
        "I look after my mother, and she has dementia and is on warfarin.",
        "I had a kidney transplant in 2014, ten years ago.",
    ] {
        let route = route(text).route;
        assert_eq!(
            (route.tier, route.judgement),
            (Tier::Profile, Judgement::Pending),
            "{text}: {:?}",
            route.reasons
        );
    }
    assert_eq!(
        route("My son can't have gluten.").subject,
        Subject::Dependant
    );
}

#[test]
fn below_the_threshold_the_next_stage_decides() {
    let routing = route("We redid the kitchen last spring.");
    assert_eq!(routing.route.judgement, Judgement::Unrouted);
    assert_eq!(routing.route.grade, Grade::Informer);
    assert_eq!(routing.route.score, 0.0);
}

#[test]
fn consequences_follow_the_domain() {
    let allergy = route("I'm allergic to tree nuts").route;
    assert_eq!(allergy.severity, Severity::Severe);
    assert_eq!(allergy.ttl, Ttl::Permanent);
    assert!(allergy.affects.contains(&Domain::Food));
    let queried = Router::new().query_domains("Any good macaron recipes?");
    assert!(
        queried.iter().any(|d| allergy.affects.contains(d)),
        "{queried:?}"
    );
    let pet = route("I have two cats").route;
    assert_eq!((pet.domain, pet.grade), (Domain::Pets, Grade::Circumstance));
    assert!(allergy.priority > pet.priority);
    assert!(matches!(
        route("I'm on antibiotics until Friday").route.ttl,
        Ttl::Dated { until_ms } if until_ms == 1_796_428_800_000
    ));
    assert!(matches!(
        route("I have a fever today").route.ttl,
        Ttl::Session { until_ms } if until_ms == 1_795_996_800_000
    ));
}

#[test]
fn attributes_and_keep() {
    let home = route("I live in Porto now, near the river.");
    assert_eq!(home.attribute.as_deref(), Some("home"));
    assert_eq!(home.value.as_deref(), Some("Porto"));
    assert_eq!(home.keep, Keep::Record);
    assert_eq!(route("What's the weather?").keep, Keep::Nothing);
    assert_eq!(route("Thanks!").keep, Keep::Nothing);
    assert_eq!(route("Can you recommend a film?").keep, Keep::Nothing);
    assert_eq!(route("I went to a concert yesterday.").keep, Keep::Episode);
    assert_eq!(route("I prefer window seats.").keep, Keep::Record);
    assert_eq!(route("Where can I eat, I'm coeliac?").keep, Keep::Record);
}

#[test]
fn a_modifier_inside_a_long_turn_is_its_own_statement() {
    let turn = "Thanks for the list! I loved the lighthouse one. We are five for dinner on Friday. \
                I'm allergic to shellfish. Dr. Roe is coming too. Could you plan three courses?";
    let router = Router::new();
    let frame = router.frame(turn);
    let shown: Vec<_> = router
        .statements(turn)
        .into_iter()
        .filter(|s| router.route_in(&guarded(s), frame, &TOLD).route.tier == Tier::Profile)
        .collect();
    assert_eq!(shown, ["I'm allergic to shellfish."]);
}

#[test]
fn a_story_frames_every_statement_of_its_turn() {
    let turn = "Write a short story for me. I'm a vampire. I'm allergic to garlic.";
    let router = Router::new();
    let frame = router.frame(turn);
    assert!(frame.foreign_words);
    let last = router.route_in(&guarded("I'm allergic to garlic."), frame, &TOLD);
    assert_eq!(last.route.judgement, Judgement::Pending);
    let alone = route("Write a short story in which I'm allergic to garlic.");
    assert_eq!(alone.route.tier, Tier::Store);
}

#[test]
fn other_languages() {
    all(
        Tier::Profile,
        &[
            "Soy alérgica a los cacahuetes.",
            "Je suis enceinte de six mois.",
            "Ich bin Veganerin.",
            "Sou diabético.",
            "Sono celiaca.",
            "卵アレルギーがあります。",
            "我对花生过敏,我有糖尿病。",
            "저는 임신 중이에요.",
            "मैं शाकाहारी हूँ।",
            "لدي حساسية من الفول السوداني.",
        ],
    );
}

#[test]
fn odd_input_has_a_sensible_route() {
    let router = Router::new();
    let paste = "lorem ipsum dolor sit amet ".repeat(2000);
    assert!(!router.statements(&paste).is_empty());
    for text in [
        "🎉🎉🎉",
        "fn main() { let visa = 3; }",
        "2026-11-29T10:00:00Z ERROR insulin: timeout",
        "\u{202e}I'm allergic\u{202c} to nuts",
        "a\u{200d}b",
        "...",
        "I",
        "'",
        "'I am allergic",
    ] {
        let route = route(text).route;
        assert!((0.0..=1.0).contains(&route.score), "{text}");
    }
    assert_eq!(tier("fn main() { let visa = 3; }"), Tier::Store);
    assert_eq!(tier("🎉🎉🎉"), Tier::Store);
    assert_eq!(tier("\u{202e}I'm allergic\u{202c} to nuts"), Tier::Profile);
    assert!(router.query_domains("🎉").is_empty());
}

#[test]
fn a_modifier_survives_in_a_paste_of_ten_thousand_words() {
    let filler = "The tram was late and the sun was out. ".repeat(550);
    let turn = format!("{filler}I'm allergic to latex. {filler}");
    let router = Router::new();
    for turn in [turn.clone(), turn.replace(". ", ".\n")] {
        let statements = router.statements(&turn);
        assert!(statements.len() <= STATEMENTS_PER_TURN);
        let told: Vec<&str> = statements
            .into_iter()
            .filter(|s| s.contains("latex"))
            .collect();
        assert_eq!(told.len(), 1);
        assert_eq!(tier(told[0]), Tier::Profile);
    }
}

#[test]
fn a_fact_beside_a_request_for_a_story_is_shown_in_doubt() {
    let router = Router::new();
    let turn = "Write a bedtime story for my daughter. She's allergic to nuts.";
    let frame = router.frame(turn);
    assert!(frame.foreign_words);
    let doubt = (Tier::Profile, Judgement::Pending);
    for text in ["I'm allergic to nuts.", turn] {
        let route = router.route_in(&guarded(text), frame, &TOLD).route;
        assert_eq!((route.tier, route.judgement), doubt, "{text}");
    }
}

#[test]
fn more_signals_than_are_looked_at_are_shown() {
    let harmless = "We talked about insulin. ".repeat(70);
    let route = route(&format!("{harmless}I carry an EpiPen.")).route;
    assert_eq!(route.tier, Tier::Profile);
    assert!(
        route
            .reasons
            .iter()
            .any(|r| r.signal == "doubt-many-signals")
    );
}

fn fragment() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("I'm ".to_owned()),
        Just("allergic to ".to_owned()),
        Just("don't eat ".to_owned()),
        Just("my son ".to_owned()),
        Just("\"".to_owned()),
        Just("? ".to_owned()),
        Just("until 31 February ".to_owned()),
        Just("我对 ".to_owned()),
        Just("no more ".to_owned()),
        Just("pork, ".to_owned()),
        "\\PC{0,12}",
    ]
}

thread_local! {
    static ROUTER: Router = Router::new();
}

proptest! {
    #[test]
    fn any_text_gets_a_consistent_verdict(parts in prop::collection::vec(fragment(), 1..20), now in any::<i64>(), offset in -1440..=1440_i16) {
        let text: String = parts.concat();
        let at = Ambient { now_ms: now, utc_offset_min: offset, entropy: [0; 32] };
        let router = ROUTER.with(Clone::clone);
        prop_assert!(router.query_domains(&text).len() <= Domain::ALL.len());
        for statement in router.statements(&text) {
            prop_assert!(text.contains(statement) && !statement.trim().is_empty());
            prop_assert!(statement.len() <= STATEMENT_BYTES);
            let Ok(Verdict::Accept(guarded)) = Guard::new().statement(statement) else { continue };
            let routing = router.route(&guarded, &at);
            let route = &routing.route;
            prop_assert!((0.0..=1.0).contains(&route.score));
            prop_assert!((0.0..=1.0).contains(&route.priority));
            prop_assert_eq!(route.score, (route.score * 10_000.0).round() / 10_000.0);
            prop_assert_eq!(route.tier == Tier::Profile, route.grade != Grade::Informer);
            if route.tier == Tier::Profile {
                prop_assert!(!route.reasons.is_empty());
                prop_assert_eq!(routing.keep, Keep::Record);
            }
            prop_assert_eq!(&routing, &router.route(&guarded, &at));
        }
    }
}
