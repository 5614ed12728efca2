//! The encoder as an ONNX file, run by tract.

use foremind_kernels::dense::Deltas;
use tract_onnx::pb::{GraphProto, ModelProto};
use tract_onnx::prelude::*;

use super::{Backend, HIDDEN};
use crate::EmbedError;
use crate::pack::{Pack, Section};

/// Inputs of the graph, in the order in which they are fed.
const INPUTS: [&str; 3] = ["input_ids", "attention_mask", "token_type_ids"];

pub(super) struct Onnx {
    plan: Arc<TypedSimplePlan>,
    vocabulary_size: usize,
}

impl Onnx {
    /// Imports the graph once, for a symbolic number of tokens: a plan for each length would cost 100 to
    /// 240 ms and its own memory for 5 to 12 % of the time of an encoding.
    ///
    /// The pack is dropped as soon as the graph has been read, and the graph as soon as it is imported,
    /// because the peak of memory lies in between.
    pub(super) fn load(pack: Pack) -> Result<Self, EmbedError> {
        let framework = tract_onnx::onnx()
            .with_ignore_output_shapes(true)
            .with_ignore_value_info(true);
        let mut proto = framework
            .proto_model_for_read(&mut pack.section(Section::Onnx)?)
            .map_err(|_| bad("expected an ONNX file, found bytes that do not parse as one"))?;
        drop(pack);
        let vocabulary_size = vocabulary_size(&proto)?;
        if let Some(graph) = &mut proto.graph {
            gather_before_scaling(graph);
        }
        let unsupported = |error: TractError| bad(format!("the graph does not import: {error:#}"));
        let mut model = framework
            .model_for_proto_model(&proto)
            .map_err(unsupported)?;
        drop(proto);
        let tokens = model.symbols.sym("tokens").to_dim();
        for input in 0..INPUTS.len() {
            model
                .set_input_fact(input, i64::fact([1.to_dim(), tokens.clone()]).into())
                .map_err(unsupported)?;
        }
        let model = model.into_optimized().map_err(unsupported)?;
        let shape = model.output_fact(0).map_err(unsupported)?.shape.clone();
        if shape.to_tvec()[..] != [1.to_dim(), tokens, HIDDEN.to_dim()] {
            return Err(bad(format!(
                "expected an output of 1 x tokens x {HIDDEN}, found {shape:?}"
            )));
        }
        let plan = model.into_runnable().map_err(unsupported)?;
        Ok(Self {
            plan,
            vocabulary_size,
        })
    }
}

impl Backend for Onnx {
    fn vocabulary_size(&self) -> usize {
        self.vocabulary_size
    }

    /// Changes go into our own products only.
    fn accepts(&self, deltas: &Deltas) -> bool {
        deltas.first_layer().is_none()
    }

    fn states(
        &self,
        texts: &[Vec<u32>],
        wanted: &[Option<&Deltas>],
    ) -> Result<Vec<Vec<f32>>, EmbedError> {
        let mut states = Vec::new();
        for tokens in texts {
            states.extend(self.states_of(tokens)?);
        }
        Ok(vec![states; wanted.len()])
    }
}

impl Onnx {
    /// One text at a time: a batch would need padding, and a mask to undo it.
    fn states_of(&self, tokens: &[u32]) -> Result<Vec<f32>, EmbedError> {
        let failed = |error: TractError| EmbedError::Inference {
            what: error.to_string(),
        };
        let ids: Vec<i64> = tokens.iter().map(|id| i64::from(*id)).collect();
        let input = |values: &[i64]| -> TractResult<TValue> {
            let tensor = Tensor::from_shape(&[1, values.len()], values)?;
            Ok(tensor.into_tvalue())
        };
        let run = || {
            let ones = vec![1; ids.len()];
            let zeros = vec![0; ids.len()];
            self.plan
                .run(tvec![input(&ids)?, input(&ones)?, input(&zeros)?])
        };
        let output = run().map_err(failed)?.swap_remove(0);
        let states = output.try_as_plain_ram().map_err(failed)?;
        let states: &[f32] = states.as_slice().map_err(failed)?;
        if states.len() != tokens.len() * HIDDEN {
            return Err(EmbedError::Inference {
                what: format!("{} numbers for {} tokens", states.len(), tokens.len()),
            });
        }
        Ok(states.to_vec())
    }
}

fn bad(what: impl Into<String>) -> EmbedError {
    EmbedError::BadWeights { what: what.into() }
}

/// Checks what the graph takes and gives, and returns the rows of its embedding table.
fn vocabulary_size(proto: &ModelProto) -> Result<usize, EmbedError> {
    let graph = proto
        .graph
        .as_ref()
        .ok_or(bad("expected a graph, found none"))?;
    let constant = |name: &str| graph.initializer.iter().find(|tensor| tensor.name == name);
    let inputs: Vec<&str> = graph
        .input
        .iter()
        .map(|input| input.name.as_str())
        .filter(|name| constant(name).is_none())
        .collect();
    if inputs != INPUTS {
        return Err(bad(format!("expected inputs {INPUTS:?}, found {inputs:?}")));
    }
    // The importer looks outputs up without asking whether they exist.
    let made = |name: &str| {
        graph
            .node
            .iter()
            .any(|node| node.output.iter().any(|output| output == name))
    };
    if graph.output.is_empty() || !graph.output.iter().all(|output| made(&output.name)) {
        return Err(bad("expected an output that a node makes, found none"));
    }
    word_gather(graph)
        .and_then(|gather| table_rows(graph, &graph.node[gather].input[0], 4))
        .ok_or(bad(format!(
            "expected rows of {HIDDEN} numbers gathered by {}, found none",
            INPUTS[0]
        )))
}

/// Rows of the table behind `name`, which may be scaled or cast on its way (at most `depth` nodes).
fn table_rows(graph: &GraphProto, name: &str, depth: usize) -> Option<usize> {
    if let Some(table) = graph.initializer.iter().find(|tensor| tensor.name == name) {
        return match table.dims[..] {
            [rows, columns] if columns == HIDDEN as i64 => usize::try_from(rows).ok(),
            _ => None,
        };
    }
    let maker = graph
        .node
        .iter()
        .find(|node| node.output.iter().any(|output| output == name))?;
    if depth == 0 {
        return None;
    }
    maker
        .input
        .iter()
        .find_map(|input| table_rows(graph, input, depth - 1))
}

/// Moves the gathering of word rows before their cast and scaling, where the graph has an 8-bit table that is
/// cast and scaled as a whole.
///
/// tract folds constants up to 4 MiB; the table is 47 MB in f32, so it would be computed anew for each text,
/// which took more time than the network on texts of some 16 tokens.
fn gather_before_scaling(graph: &mut GraphProto) {
    let Some((gather, cast, scale)) = scaled_table(graph) else {
        return;
    };
    let rows = format!("{}/rows", INPUTS[0]);
    let scales = format!("{}/scales", INPUTS[0]);
    let table = core::mem::replace(&mut graph.node[cast].input[0], rows.clone());
    let mut gather_scales = graph.node[gather].clone();
    gather_scales.name.clone_from(&scales);
    gather_scales.input[0] = core::mem::replace(&mut graph.node[scale].input[1], scales.clone());
    gather_scales.output[0] = scales;
    graph.node[gather].input[0] = table;
    let gathered = core::mem::replace(&mut graph.node[gather].output[0], rows);
    graph.node[scale].output[0] = gathered;
    graph.node.push(gather_scales);
}

/// The places of a Gather by word, of the Cast and of the Mul that make its table from constants, when nothing
/// else uses what they make and there is one scale for each row.
fn scaled_table(graph: &GraphProto) -> Option<(usize, usize, usize)> {
    let maker = |name: &str, operator: &str| {
        graph
            .node
            .iter()
            .position(|node| node.op_type == operator && node.output == [name])
    };
    let used_once = |name: &str| {
        let uses = graph.node.iter().flat_map(|node| &node.input);
        uses.filter(|input| *input == name).count() == 1
    };
    let constant = |name: &str| graph.initializer.iter().find(|tensor| tensor.name == name);
    let gather = word_gather(graph)?;
    let [table, _] = &graph.node[gather].input[..] else {
        return None;
    };
    let scale = maker(table, "Mul")?;
    let [whole, scales] = &graph.node[scale].input[..] else {
        return None;
    };
    let cast = maker(whole, "Cast")?;
    let by_row = graph.node[gather]
        .attribute
        .iter()
        .all(|attribute| attribute.name == "axis" && attribute.i == 0);
    let one_each = matches!(constant(scales)?.dims[..], [rows, 1]
        if constant(graph.node[cast].input.first()?)?.dims[..] == [rows, HIDDEN as i64]);
    (by_row && one_each && used_once(table) && used_once(whole)).then_some((gather, cast, scale))
}

/// The place of the node that gathers a row for each word.
fn word_gather(graph: &GraphProto) -> Option<usize> {
    graph.node.iter().position(|node| {
        node.op_type == "Gather" && node.input.get(1).is_some_and(|ids| ids == INPUTS[0])
    })
}
