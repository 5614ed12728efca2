//! What judges a statement beside words: the files of the heads, and the encoder that one of them runs on.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use foremind_embed::{EMBEDDING_HEAD, Embedder};
use foremind_engine::Engine;
use foremind_guard::Guarded;
use foremind_router::{Frame, NgramHead, ROUTE_HEAD, Router, Routing};
use foremind_types::limits::EMBED_TEXTS;
use foremind_types::{Ambient, Embedding, EncodeFailure, HeadId};

use crate::arguments::Arguments;
use crate::input::Problem;

/// The heads of one run.
pub(crate) struct Stages {
    ngrams: Option<NgramHead>,
    encoder: Option<Embedder>,
    /// What texts were encoded to, for both heads: background is told to many memories.
    encoded: RefCell<HashMap<String, Vec<Embedding>>>,
    /// Where that is kept from one run to the next.
    cache: Option<PathBuf>,
    /// How much of it stands there.
    kept: Cell<usize>,
}

impl Stages {
    /// Reads the files that the command line names.
    ///
    /// # Errors
    /// [`Problem::Input`].
    pub(crate) fn read(arguments: &Arguments) -> Result<Self, Problem> {
        let given = |path: &Option<std::path::PathBuf>| path.clone().filter(|_| !arguments.lexical);
        let ngrams = match given(&arguments.ngrams) {
            Some(path) => {
                let read = NgramHead::read(&bytes(&path)?);
                Some(read.map_err(|error| problem(&path, &error))?)
            }
            None => None,
        };
        let encoder = match (given(&arguments.model), given(&arguments.adapter)) {
            (Some(model), Some(adapter)) => {
                let mut encoder =
                    Embedder::load(bytes(&model)?).map_err(|error| problem(&model, &error))?;
                encoder
                    .load_adapter(bytes(&adapter)?)
                    .map_err(|error| problem(&adapter, &error))?;
                Some(encoder)
            }
            (None, None) => None,
            _ => {
                return Err(Problem::Usage(
                    "--model and --adapter belong together".to_owned(),
                ));
            }
        };
        let stages = Self {
            ngrams,
            encoder,
            encoded: RefCell::default(),
            cache: arguments.cache.clone().filter(|_| !arguments.lexical),
            kept: Cell::new(0),
        };
        stages.restore()?;
        Ok(stages)
    }

    /// Words alone.
    #[cfg(test)]
    pub(crate) fn words() -> Self {
        Self {
            ngrams: None,
            encoder: None,
            encoded: RefCell::default(),
            cache: None,
            kept: Cell::new(0),
        }
    }

    /// Takes over what an earlier run kept, where it is of this model.
    fn restore(&self) -> Result<(), Problem> {
        let (Some(path), Some(encoder)) = (&self.cache, &self.encoder) else {
            return Ok(());
        };
        let Ok(text) = fs::read_to_string(path) else {
            return Ok(());
        };
        // The model's id names its adapter as well, so one text tells for all.
        let own = encoder.encode(&["model"], &both_heads());
        let own = own.map_err(|error| problem(path, &error))?;
        let mut encoded = self.encoded.borrow_mut();
        for line in text.lines() {
            let (text, rows): (String, Vec<Embedding>) =
                serde_json::from_str(line).map_err(|error| problem(path, &error))?;
            let same = own
                .iter()
                .flatten()
                .zip(&rows)
                .all(|(own, row)| own.model_id == row.model_id && own.head_id == row.head_id);
            if !same {
                return Err(Problem::Input(format!(
                    "{}: made by another model; delete it",
                    path.display()
                )));
            }
            encoded.insert(text, rows);
        }
        self.kept.set(encoded.len());
        Ok(())
    }

    /// Keeps what was encoded for the next run.
    ///
    /// # Errors
    /// [`Problem::Input`] when the file cannot be written.
    pub(crate) fn save(&self) -> Result<(), Problem> {
        let (Some(path), encoded) = (&self.cache, self.encoded.borrow()) else {
            return Ok(());
        };
        if encoded.len() == self.kept.get() {
            return Ok(());
        }
        let mut lines = String::new();
        for row in encoded.iter() {
            let line = serde_json::to_string(&row).map_err(|error| problem(path, &error))?;
            lines += &line;
            lines.push('\n');
        }
        fs::write(path, lines).map_err(|error| problem(path, &error))?;
        self.kept.set(encoded.len());
        Ok(())
    }

    /// The name of the deciding stages, for the figures.
    pub(crate) fn name(&self) -> &'static str {
        match (&self.ngrams, &self.encoder) {
            (None, None) => "lexical",
            (Some(_), None) => "lexical, n-grams",
            (None, Some(_)) => "lexical, encoder",
            (Some(_), Some(_)) => "lexical, encoder, n-grams",
        }
    }

    /// A router with what there is.
    ///
    /// # Errors
    /// [`Problem::Input`] for a head without calibration.
    pub(crate) fn router(&self) -> Result<Router, Problem> {
        let mut router = Router::new();
        if let Some(ngrams) = &self.ngrams {
            router = router.with_ngrams(ngrams.clone())?;
        }
        if self.encoder.is_some() {
            router = router.with_encoder_head(Some(&route_head()))?;
        }
        Ok(router)
    }

    /// An engine with what there is.
    ///
    /// # Errors
    /// [`Problem::Input`] for a head without calibration.
    pub(crate) fn engine(&self) -> Result<Engine, Problem> {
        let mut engine = Engine::new();
        if let Some(ngrams) = &self.ngrams {
            engine.use_ngrams(ngrams.clone())?;
        }
        if self.encoder.is_some() {
            engine.use_head(Some(route_head()))?;
        }
        Ok(engine)
    }

    /// Whether there is an encoder.
    pub(crate) fn encodes(&self) -> bool {
        self.encoder.is_some()
    }

    /// The verdict of all stages on a statement of a turn.
    pub(crate) fn route(
        &self,
        router: &Router,
        text: &Guarded,
        frame: Frame,
        at: &Ambient,
    ) -> Routing {
        let routing = router.route_in(text, frame, at);
        if frame.foreign_words || !router.asks_encoder(text.as_str(), &routing) {
            return routing;
        }
        let head = route_head();
        let Ok(rows) = self.encode(&[text.as_str().to_owned()], std::slice::from_ref(&head)) else {
            return routing;
        };
        let Some(of_head) = rows.first().and_then(|row| row.first()) else {
            return routing;
        };
        router
            .judge_features(routing.clone(), &head, &of_head.features, at)
            .unwrap_or(routing)
    }

    /// Answers an engine that wants texts encoded.
    ///
    /// # Errors
    /// [`EncodeFailure::NotReady`] without an encoder.
    pub(crate) fn encode(
        &self,
        texts: &[String],
        heads: &[HeadId],
    ) -> Result<Vec<Vec<Embedding>>, EncodeFailure> {
        let encoder = self.encoder.as_ref().ok_or(EncodeFailure::NotReady)?;
        let both = both_heads();
        let mut encoded = self.encoded.borrow_mut();
        let missing: Vec<&str> = texts
            .iter()
            .filter(|text| !encoded.contains_key(*text))
            .map(String::as_str)
            .collect();
        for texts in missing.chunks(EMBED_TEXTS) {
            let rows = encoder
                .encode(texts, &both)
                .map_err(|_| EncodeFailure::Failed)?;
            encoded.extend(texts.iter().map(|text| (*text).to_owned()).zip(rows));
        }
        let wanted = |row: &Vec<Embedding>| {
            let of_heads = row.iter().filter(|one| heads.contains(&one.head_id));
            of_heads.cloned().collect()
        };
        Ok(texts
            .iter()
            .filter_map(|text| encoded.get(text))
            .map(wanted)
            .collect())
    }
}

fn both_heads() -> [HeadId; 2] {
    [HeadId(EMBEDDING_HEAD.to_owned()), route_head()]
}

fn route_head() -> HeadId {
    HeadId(ROUTE_HEAD.to_owned())
}

fn bytes(path: &Path) -> Result<Vec<u8>, Problem> {
    fs::read(path).map_err(|error| problem(path, &error))
}

fn problem(path: &Path, error: &dyn std::fmt::Display) -> Problem {
    Problem::Input(format!("{}: {error}", path.display()))
}
