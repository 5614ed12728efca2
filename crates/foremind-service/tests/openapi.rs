//! The committed document is the one that the types make. `UPDATE_EXPECT=1` writes it anew.

use expect_test::expect_file;
use foremind_service::openapi::document;
use serde_json::Value;

#[test]
fn the_document_is_that_of_the_types() {
    let document = format!("{:#}\n", document());
    expect_file!["../../../docs/openapi.json"].assert_eq(&document);
}

#[test]
fn every_reference_leads_somewhere() {
    let document = document();
    let mut references = Vec::new();
    collect(&document, &mut references);
    assert!(references.len() > 20, "{}", references.len());
    for reference in references {
        let pointer = reference.strip_prefix('#').unwrap();
        assert!(document.pointer(pointer).is_some(), "{reference}");
    }
}

fn collect(value: &Value, references: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            if let Some(Value::String(reference)) = fields.get("$ref") {
                references.push(reference.clone());
            }
            fields.values().for_each(|value| collect(value, references));
        }
        Value::Array(values) => values.iter().for_each(|value| collect(value, references)),
        _ => {}
    }
}
