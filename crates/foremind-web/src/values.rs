//! Plain JavaScript values to Rust values and back, by `serde`, for the types that cross this border and no others.
//!
//! Two things keep it small, since all of it is compiled anew for each type. A value that does not fit is an [`Unfit`] and nothing more:
//! the border tells no more than that, so nothing here formats what was found. And the fields of an object are read in the order of
//! their declaration, as a sequence, so that no type needs code that finds a field by its name.

mod reader;
mod writer;

use core::fmt;
use std::cell::RefCell;

use foremind_types::small::SmallMap;
use js_sys::Reflect;
use wasm_bindgen::JsValue;

pub(crate) use reader::{Reader, Tagged};
pub(crate) use writer::Writer;

/// A value has another type, a field is missing, or a number is out of range.
#[derive(Debug)]
pub(crate) struct Unfit;

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value does not fit")
    }
}

impl core::error::Error for Unfit {}

impl serde::de::Error for Unfit {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self
    }
}

impl serde::ser::Error for Unfit {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self
    }
}

/// From here on, doubles are no longer each whole number.
const SAFE: f64 = 9_007_199_254_740_992.0;

fn get(object: &JsValue, name: &'static str) -> Result<JsValue, Unfit> {
    Reflect::get(object, &name_of(name)).map_err(|_| Unfit)
}

fn set(object: &JsValue, name: &'static str, value: &JsValue) -> Result<(), Unfit> {
    let set = Reflect::set(object, &name_of(name), value);
    set.map(drop).map_err(|_| Unfit)
}

/// Names of fields stand in the module, each at a place of its own. A string of JavaScript is made of one once: that takes longer than
/// all the rest of reading or writing a field.
fn name_of(name: &'static str) -> JsValue {
    thread_local! {
        static NAMES: RefCell<SmallMap<(*const u8, usize), JsValue>> = RefCell::default();
    }
    NAMES.with_borrow_mut(|names| {
        let made = names
            .entry((name.as_ptr(), name.len()))
            .or_insert_with(|| JsValue::from_str(name));
        made.clone()
    })
}
