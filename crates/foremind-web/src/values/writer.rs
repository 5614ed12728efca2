//! Rust to JavaScript.

use js_sys::{Array, Object, Reflect, Uint8Array};
use serde::ser::{
    Impossible, Serialize, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant,
    SerializeTuple, Serializer,
};
use wasm_bindgen::JsValue;

use super::{SAFE, Unfit, set};

/// Writes one value: structs and maps as objects, sequences as arrays, bytes as `Uint8Array`, `None` as `undefined`.
#[derive(Clone, Copy)]
pub(crate) struct Writer;

type Written = Result<JsValue, Unfit>;

impl Serializer for Writer {
    type Ok = JsValue;
    type Error = Unfit;
    type SerializeSeq = Items;
    type SerializeTuple = Items;
    type SerializeTupleStruct = Impossible<JsValue, Unfit>;
    type SerializeTupleVariant = Impossible<JsValue, Unfit>;
    type SerializeMap = Fields;
    type SerializeStruct = Fields;
    type SerializeStructVariant = Fields;

    fn serialize_bool(self, value: bool) -> Written {
        Ok(JsValue::from_bool(value))
    }

    fn serialize_f64(self, value: f64) -> Written {
        Ok(JsValue::from_f64(value))
    }

    fn serialize_f32(self, value: f32) -> Written {
        self.serialize_f64(f64::from(value))
    }

    #[allow(
        clippy::cast_precision_loss,
        reason = "what would lose any is refused, or rounds to what is"
    )]
    fn serialize_i64(self, value: i64) -> Written {
        let number = value as f64;
        if number.abs() >= SAFE {
            return Err(Unfit);
        }
        self.serialize_f64(number)
    }

    fn serialize_u64(self, value: u64) -> Written {
        self.serialize_i64(i64::try_from(value).map_err(|_| Unfit)?)
    }

    fn serialize_i8(self, value: i8) -> Written {
        self.serialize_f64(f64::from(value))
    }

    fn serialize_i16(self, value: i16) -> Written {
        self.serialize_f64(f64::from(value))
    }

    fn serialize_i32(self, value: i32) -> Written {
        self.serialize_f64(f64::from(value))
    }

    fn serialize_u8(self, value: u8) -> Written {
        self.serialize_f64(f64::from(value))
    }

    fn serialize_u16(self, value: u16) -> Written {
        self.serialize_f64(f64::from(value))
    }

    fn serialize_u32(self, value: u32) -> Written {
        self.serialize_f64(f64::from(value))
    }

    fn serialize_char(self, value: char) -> Written {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, value: &str) -> Written {
        Ok(JsValue::from_str(value))
    }

    fn serialize_bytes(self, value: &[u8]) -> Written {
        Ok(Uint8Array::from(value).into())
    }

    fn serialize_none(self) -> Written {
        Ok(JsValue::UNDEFINED)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Written {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Written {
        self.serialize_none()
    }

    fn serialize_unit_struct(self, _: &'static str) -> Written {
        self.serialize_none()
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Written {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Written {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Written {
        let object = Object::new().into();
        set(&object, variant, &value.serialize(self)?)?;
        Ok(object)
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Items, Unfit> {
        Ok(Items(Array::new()))
    }

    fn serialize_tuple(self, _: usize) -> Result<Items, Unfit> {
        self.serialize_seq(None)
    }

    fn serialize_tuple_struct(
        self,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleStruct, Unfit> {
        Err(Unfit)
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleVariant, Unfit> {
        Err(Unfit)
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Fields, Unfit> {
        Ok(Fields {
            object: Object::new().into(),
            variant: None,
            key: JsValue::UNDEFINED,
        })
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Fields, Unfit> {
        self.serialize_map(None)
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Fields, Unfit> {
        let mut fields = self.serialize_map(None)?;
        fields.variant = Some(variant);
        Ok(fields)
    }
}

/// An array that is being filled.
pub(crate) struct Items(Array);

impl SerializeSeq for Items {
    type Ok = JsValue;
    type Error = Unfit;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Unfit> {
        self.0.push(&value.serialize(Writer)?);
        Ok(())
    }

    fn end(self) -> Written {
        Ok(self.0.into())
    }
}

impl SerializeTuple for Items {
    type Ok = JsValue;
    type Error = Unfit;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Unfit> {
        SerializeSeq::serialize_element(self, value)
    }

    fn end(self) -> Written {
        SerializeSeq::end(self)
    }
}

/// An object that is being filled.
pub(crate) struct Fields {
    object: JsValue,
    /// The variant that it is of, unless it has a tag for that.
    variant: Option<&'static str>,
    /// The key of a map whose value comes next.
    key: JsValue,
}

impl SerializeStruct for Fields {
    type Ok = JsValue;
    type Error = Unfit;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        name: &'static str,
        value: &T,
    ) -> Result<(), Unfit> {
        set(&self.object, name, &value.serialize(Writer)?)
    }

    fn end(self) -> Written {
        let Some(variant) = self.variant else {
            return Ok(self.object);
        };
        let outer = Object::new().into();
        set(&outer, variant, &self.object)?;
        Ok(outer)
    }
}

impl SerializeStructVariant for Fields {
    type Ok = JsValue;
    type Error = Unfit;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        name: &'static str,
        value: &T,
    ) -> Result<(), Unfit> {
        SerializeStruct::serialize_field(self, name, value)
    }

    fn end(self) -> Written {
        SerializeStruct::end(self)
    }
}

impl SerializeMap for Fields {
    type Ok = JsValue;
    type Error = Unfit;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Unfit> {
        self.key = key.serialize(Writer)?;
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Unfit> {
        let set = Reflect::set(&self.object, &self.key, &value.serialize(Writer)?);
        set.map(drop).map_err(|_| Unfit)
    }

    fn end(self) -> Written {
        SerializeStruct::end(self)
    }
}
