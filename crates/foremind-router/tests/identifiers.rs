//! What tells who somebody is, and what does not.

use foremind_router::identifiers;

/// The text with each of its identifiers in brackets behind its kind.
fn marked(text: &str) -> String {
    let mut out = String::new();
    let mut at = 0;
    for (range, kind) in identifiers(text) {
        out += &text[at..range.start];
        out += &format!("{}[{}]", kind.as_str(), &text[range.clone()]);
        at = range.end;
    }
    out + &text[at..]
}

fn check(rows: &[(&str, &str)]) {
    let wrong: Vec<String> = rows
        .iter()
        .filter(|(text, expected)| marked(text) != *expected)
        .map(|(text, expected)| format!("{}\n{expected}", marked(text)))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn names_are_found() {
    check(&[
        (
            "My sister Rose is allergic to bees",
            "My sister name[Rose] is allergic to bees",
        ),
        (
            "I live with Max Weber and his dog",
            "I live with name[Max] name[Weber] and his dog",
        ),
        (
            "Anna's birthday is in May",
            "name[Anna]'s birthday is in May",
        ),
        (
            "Dr. Okonkwo prescribed warfarin",
            "Dr. name[Okonkwo] prescribed warfarin",
        ),
        (
            "our cat is called biscuitface",
            "our cat is called name[biscuitface]",
        ),
        (
            "I work at Zenturo in Berlin",
            "I work at name[Zenturo] in Berlin",
        ),
        (
            "Ich wohne mit Jürgen Kowalczyk zusammen",
            "Ich wohne mit name[Jürgen] name[Kowalczyk] zusammen",
        ),
        (
            "Mi hermana Lucía Ferrándiz vive en Madrid",
            "Mi hermana name[Lucía] name[Ferrándiz] vive en Madrid",
        ),
        ("Мою сестру зовут Наташа", "Мою сестру зовут name[Наташа]"),
        ("我叫王小明，我对花生过敏", "我叫name[王小明]，我对花生过敏"),
        ("田中さんと働いています", "name[田中]さんと働いています"),
        (
            "제 아내 김민지 씨는 채식주의자예요",
            "제 아내 name[김민지] 씨는 채식주의자예요",
        ),
        ("اسمي محمد وأنا نباتي", "اسمي name[محمد] وأنا نباتي"),
        ("मेरा नाम राहुल है", "मेरा नाम name[राहुल] है"),
    ]);
}

#[test]
fn addresses_numbers_and_contacts_are_found() {
    check(&[
        (
            "I live at 12 Baker Street, London NW1 6XE",
            "I live at address[12 Baker Street, London NW1 6XE]",
        ),
        (
            "Ich wohne in der Lindenstraße 14, 10969 Berlin",
            "Ich wohne in der address[Lindenstraße 14, 10969 Berlin]",
        ),
        (
            "J'habite 8 rue de Rivoli, 75004 Paris",
            "J'habite address[8 rue de Rivoli, 75004 Paris]",
        ),
        (
            "Vivo en la calle Mayor 5",
            "Vivo en la address[calle Mayor 5]",
        ),
        (
            "我住在北京市朝阳区建国路88号",
            "我住在address[北京市朝阳区建国路88号]",
        ),
        (
            "Call me on +44 20 7946 0958",
            "Call me on +number[44 20 7946 0958]",
        ),
        (
            "My passport number is X1234567",
            "My passport number is number[X1234567]",
        ),
        (
            "The code of the door is 4711",
            "The code of the door is number[4711]",
        ),
        ("My plate is B-MW 4711", "My plate is number[B-MW 4711]"),
        (
            "Write to ada.l@example.org, please",
            "Write to contact[ada.l@example.org], please",
        ),
        (
            "I was born on 1984-03-12",
            "I was born on number[1984-03-12]",
        ),
    ]);
}

#[test]
fn what_changes_answers_stays() {
    for text in [
        "I'm allergic to tree nuts and Penicillin",
        "I take 50000 IU of vitamin D weekly",
        "I take Warfarin 5 mg every Monday",
        "We have marble worktops in the kitchen",
        "I moved to Lisbon in 2019 and speak Portuguese",
        "I use Python 3 on Ubuntu",
        "My visa expires on 2026-11-29",
        "My passport expires in 2027",
        "I earn 45,000 euros a year",
        "I have Crohn's disease",
        "Ich habe eine Allergie gegen Nüsse und Milch",
        "Will you remind me that I fast during Ramadan?",
        "I run 10 km before work",
        "Je ne mange pas de porc",
        "我对花生过敏",
        "卵アレルギーがあります",
        "저는 땅콩 알레르기가 있어요",
        "У меня аллергия на орехи",
    ] {
        assert_eq!(marked(text), text);
    }
}

#[test]
fn any_text_is_read() {
    for text in [
        "",
        " ",
        "@",
        "a@",
        "'s",
        "号",
        "1号",
        "I",
        "Mr.",
        "名前は",
        "\u{200b}",
        "12 34 56 78 号路 @x http://",
    ] {
        for (range, _) in identifiers(text) {
            assert!(text.get(range).is_some());
        }
    }
}
