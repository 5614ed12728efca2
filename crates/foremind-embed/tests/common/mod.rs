//! What the tests of this crate share: seeded numbers, and the smallest model that the embedder accepts.
#![allow(dead_code, reason = "each test file uses a part")]

use foremind_embed::pack;

/// Dimensions of the model's rows.
pub const COLUMNS: usize = 384;

/// SplitMix64 (Steele, Lea, Flood 2014): equal seeds give equal tests everywhere.
pub struct Seeded(pub u64);

impl Seeded {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }
}

/// A vocabulary of eight tokens.
pub const VOCABULARY: &str = "[PAD]\n[UNK]\n[CLS]\n[SEP]\ntree\nnut\n##s\nmarble\n";

/// Row `id` of the tiny model's table.
pub fn row(id: usize) -> [f32; COLUMNS] {
    let mut seeded = Seeded(id as u64);
    core::array::from_fn(|_| (seeded.below(2001) as f32 - 1000.0) / 1000.0)
}

/// A model file whose hidden states are the rows of a table: what the embedder does around the network can
/// then be checked by plain arithmetic.
pub fn tiny_pack(vocabulary: &str, rows: usize) -> Vec<u8> {
    pack::write(
        "tiny/1",
        vocabulary.as_bytes(),
        &onnx(
            rows,
            &["input_ids", "attention_mask", "token_type_ids"],
            "Gather",
        ),
    )
}

/// An ONNX file with one node; see the field numbers in onnx.proto3.
pub fn onnx(rows: usize, inputs: &[&str], operator: &str) -> Vec<u8> {
    let mut table = Vec::new();
    for dimension in [rows, COLUMNS] {
        varint_field(&mut table, 1, dimension);
    }
    varint_field(&mut table, 2, 1);
    bytes_field(&mut table, 8, b"table");
    let raw: Vec<u8> = (0..rows).flat_map(row).flat_map(f32::to_le_bytes).collect();
    bytes_field(&mut table, 9, &raw);

    model(
        &[node(&["table", "input_ids"], "hidden", operator)],
        &[table],
        inputs,
    )
}

/// A graph that gathers rows and then needs an operator that no runtime has.
pub fn onnx_of_unknown_operator(rows: usize) -> Vec<u8> {
    let mut table = Vec::new();
    for dimension in [rows, COLUMNS] {
        varint_field(&mut table, 1, dimension);
    }
    varint_field(&mut table, 2, 1);
    bytes_field(&mut table, 8, b"table");
    bytes_field(&mut table, 9, &vec![0; rows * COLUMNS * 4]);
    model(
        &[
            node(&["table", "input_ids"], "rows", "Gather"),
            node(&["rows"], "hidden", "NoSuchOperator"),
        ],
        &[table],
        &["input_ids", "attention_mask", "token_type_ids"],
    )
}

/// The same hidden states to within rounding from 8-bit rows with a scale for each, as the shipped weights
/// have them: Cast, Mul, Gather.
pub fn quantised_onnx(rows: usize) -> Vec<u8> {
    let mut table = Vec::new();
    for dimension in [rows, COLUMNS] {
        varint_field(&mut table, 1, dimension);
    }
    varint_field(&mut table, 2, 3);
    bytes_field(&mut table, 8, b"table_q");
    let raw: Vec<u8> = (0..rows)
        .flat_map(|id| row(id).map(|x| (x / row_scale(id)).round() as i8 as u8))
        .collect();
    bytes_field(&mut table, 9, &raw);
    let mut scales = Vec::new();
    for dimension in [rows, 1] {
        varint_field(&mut scales, 1, dimension);
    }
    varint_field(&mut scales, 2, 1);
    bytes_field(&mut scales, 8, b"scales");
    let raw: Vec<u8> = (0..rows)
        .map(row_scale)
        .flat_map(f32::to_le_bytes)
        .collect();
    bytes_field(&mut scales, 9, &raw);

    let mut to_f32 = Vec::new();
    bytes_field(&mut to_f32, 1, b"to");
    varint_field(&mut to_f32, 3, 1);
    varint_field(&mut to_f32, 20, 2);
    let mut cast = node(&["table_q"], "table_f", "Cast");
    bytes_field(&mut cast, 5, &to_f32);
    model(
        &[
            cast,
            node(&["table_f", "scales"], "table", "Mul"),
            node(&["table", "input_ids"], "hidden", "Gather"),
        ],
        &[table, scales],
        &["input_ids", "attention_mask", "token_type_ids"],
    )
}

/// What one step of a row's 8-bit numbers is worth; differs from row to row.
pub fn row_scale(id: usize) -> f32 {
    (1.0 + id as f32 / 16.0) / 127.0
}

fn node(inputs: &[&str], output: &str, operator: &str) -> Vec<u8> {
    let mut node = Vec::new();
    for input in inputs {
        bytes_field(&mut node, 1, input.as_bytes());
    }
    bytes_field(&mut node, 2, output.as_bytes());
    bytes_field(&mut node, 4, operator.as_bytes());
    node
}

fn model(nodes: &[Vec<u8>], constants: &[Vec<u8>], inputs: &[&str]) -> Vec<u8> {
    let mut graph = Vec::new();
    for node in nodes {
        bytes_field(&mut graph, 1, node);
    }
    bytes_field(&mut graph, 2, b"tiny");
    for constant in constants {
        bytes_field(&mut graph, 5, constant);
    }
    for input in inputs {
        bytes_field(&mut graph, 11, &value(input, 7));
    }
    bytes_field(&mut graph, 12, &value("hidden", 1));

    let mut opset = Vec::new();
    varint_field(&mut opset, 2, 17);
    let mut model = Vec::new();
    varint_field(&mut model, 1, 8);
    bytes_field(&mut model, 7, &graph);
    bytes_field(&mut model, 8, &opset);
    model
}

fn value(name: &str, element: usize) -> Vec<u8> {
    let mut dimension = Vec::new();
    bytes_field(&mut dimension, 2, b"any");
    let mut shape = Vec::new();
    bytes_field(&mut shape, 1, &dimension);
    bytes_field(&mut shape, 1, &dimension);
    let mut tensor = Vec::new();
    varint_field(&mut tensor, 1, element);
    bytes_field(&mut tensor, 2, &shape);
    let mut kind = Vec::new();
    bytes_field(&mut kind, 1, &tensor);
    let mut value = Vec::new();
    bytes_field(&mut value, 1, name.as_bytes());
    bytes_field(&mut value, 2, &kind);
    value
}

fn varint_field(out: &mut Vec<u8>, field: usize, value: usize) {
    varint(out, field << 3);
    varint(out, value);
}

fn bytes_field(out: &mut Vec<u8>, field: usize, bytes: &[u8]) {
    varint(out, field << 3 | 2);
    varint(out, bytes.len());
    out.extend(bytes);
}

fn varint(out: &mut Vec<u8>, mut value: usize) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
