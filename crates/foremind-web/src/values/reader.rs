//! JavaScript to Rust.

use js_sys::{Array, ArrayBuffer, Object, Uint8Array};
use serde::de::value::U32Deserializer;
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, IntoDeserializer, SeqAccess, VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;
use wasm_bindgen::{JsCast, JsValue};

use super::{SAFE, Unfit, get};

/// Reads one value.
pub(crate) struct Reader(pub(crate) JsValue);

impl Reader {
    /// A whole number that a double holds exactly.
    fn whole(&self) -> Result<i64, Unfit> {
        let number = self.0.as_f64().ok_or(Unfit)?;
        if number.abs() >= SAFE || number.trunc() != number {
            return Err(Unfit);
        }
        #[allow(clippy::cast_possible_truncation, reason = "checked above")]
        Ok(number as i64)
    }

    /// The elements of an array, typed or not.
    fn items(&self) -> Result<Items, Unfit> {
        let array = if Array::is_array(&self.0) {
            self.0.clone().unchecked_into()
        } else if ArrayBuffer::is_view(&self.0) {
            Array::from(&self.0)
        } else {
            return Err(Unfit);
        };
        Ok(Items { array, at: 0 })
    }

    fn fields(self, names: &'static [&'static str]) -> Result<Fields, Unfit> {
        let names = names.iter();
        let object = self.0;
        object
            .is_object()
            .then_some(Fields { object, names })
            .ok_or(Unfit)
    }

    /// `'variant'` or `{ variant: what it holds }`.
    fn variant(&self) -> Result<(String, JsValue), Unfit> {
        if let Some(name) = self.0.as_string() {
            return Ok((name, JsValue::UNDEFINED));
        }
        if !self.0.is_object() {
            return Err(Unfit);
        }
        let entries = Object::entries(self.0.unchecked_ref());
        if entries.length() != 1 {
            return Err(Unfit);
        }
        let entry: Array = entries.get(0).unchecked_into();
        Ok((entry.get(0).as_string().ok_or(Unfit)?, entry.get(1)))
    }
}

impl<'de> Deserializer<'de> for Reader {
    type Error = Unfit;

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unfit> {
        visitor.visit_bool(self.0.as_bool().ok_or(Unfit)?)
    }

    fn deserialize_i64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unfit> {
        visitor.visit_i64(self.whole()?)
    }

    fn deserialize_i32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unfit> {
        self.deserialize_i64(visitor)
    }

    fn deserialize_i8<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unfit> {
        self.deserialize_i64(visitor)
    }

    fn deserialize_i16<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unfit> {
        self.deserialize_i64(visitor)
    }

    fn deserialize_u8<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unfit> {
        self.deserialize_i64(visitor)
    }

    fn deserialize_u16<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unfit> {
        self.deserialize_i64(visitor)
    }

    fn deserialize_u32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unfit> {
        self.deserialize_i64(visitor)
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unfit> {
        self.deserialize_i64(visitor)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unfit> {
        visitor.visit_f64(self.0.as_f64().ok_or(Unfit)?)
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unfit> {
        self.deserialize_f64(visitor)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unfit> {
        visitor.visit_string(self.0.as_string().ok_or(Unfit)?)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unfit> {
        self.deserialize_string(visitor)
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unfit> {
        let bytes: &Uint8Array = self.0.dyn_ref().ok_or(Unfit)?;
        visitor.visit_byte_buf(bytes.to_vec())
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unfit> {
        if self.0.is_undefined() || self.0.is_null() {
            visitor.visit_none()
        } else {
            visitor.visit_some(self)
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unfit> {
        visitor.visit_seq(self.items()?)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        names: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Unfit> {
        visitor.visit_seq(self.fields(names)?)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        names: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Unfit> {
        let (name, held) = self.variant()?;
        visitor.visit_enum(Variant::new(names, &name, held)?)
    }

    /// What none of the types that cross here asks for.
    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Unfit> {
        Err(Unfit)
    }

    forward_to_deserialize_any! {
        i128 u128 char bytes unit unit_struct newtype_struct tuple tuple_struct map identifier ignored_any
    }
}

/// The elements of an array.
struct Items {
    array: Array,
    at: u32,
}

impl<'de> SeqAccess<'de> for Items {
    type Error = Unfit;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Unfit> {
        if self.at == self.array.length() {
            return Ok(None);
        }
        self.at += 1;
        seed.deserialize(Reader(self.array.get(self.at - 1)))
            .map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        Some((self.array.length() - self.at) as usize)
    }
}

/// The fields of an object, as the type that is read declares them.
struct Fields {
    object: JsValue,
    names: core::slice::Iter<'static, &'static str>,
}

impl Fields {
    fn next(&mut self) -> Result<Option<JsValue>, Unfit> {
        let name = self.names.next();
        name.map(|name| get(&self.object, name)).transpose()
    }
}

impl<'de> SeqAccess<'de> for Fields {
    type Error = Unfit;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Unfit> {
        let Some(value) = self.next()? else {
            return Ok(None);
        };
        // Of a field that is absent, an option makes `None`. What makes nothing of it may have a default; the type knows.
        let absent = value.is_undefined();
        match seed.deserialize(Reader(value)) {
            Err(Unfit) if absent => Ok(None),
            read => read.map(Some),
        }
    }
}

/// Reads an enumeration from an object whose field `tag` names the variant and whose other fields are the variant's.
pub(crate) struct Tagged<'v> {
    pub(crate) object: &'v JsValue,
    pub(crate) tag: &'static str,
}

impl<'de> Deserializer<'de> for Tagged<'_> {
    type Error = Unfit;

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        names: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Unfit> {
        let name = get(self.object, self.tag)?.as_string().ok_or(Unfit)?;
        visitor.visit_enum(Variant::new(names, &name, self.object.clone())?)
    }

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Unfit> {
        Err(Unfit)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

/// A variant by its place in the declaration, and what it holds.
struct Variant {
    place: u32,
    held: Reader,
}

impl Variant {
    fn new(names: &[&str], name: &str, held: JsValue) -> Result<Self, Unfit> {
        let place = names.iter().position(|known| *known == name);
        let place = u32::try_from(place.ok_or(Unfit)?).map_err(|_| Unfit)?;
        let held = Reader(held);
        Ok(Self { place, held })
    }
}

impl<'de> EnumAccess<'de> for Variant {
    type Error = Unfit;
    type Variant = Reader;

    fn variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<(T::Value, Reader), Unfit> {
        let place: U32Deserializer<Unfit> = self.place.into_deserializer();
        Ok((seed.deserialize(place)?, self.held))
    }
}

impl<'de> VariantAccess<'de> for Reader {
    type Error = Unfit;

    fn unit_variant(self) -> Result<(), Unfit> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Unfit> {
        seed.deserialize(self)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Unfit> {
        self.deserialize_seq(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        names: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Unfit> {
        visitor.visit_seq(self.fields(names)?)
    }
}
