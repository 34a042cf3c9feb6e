//! Kernel parameters below `/proc/sys`, read by a table: one line per file.

use crate::collector::{Context, Sink};
use crate::{Missing, parse};
use narrows_model::{FactKey, Value};

/// How the text of a parameter becomes facts.
#[derive(Clone, Copy)]
pub(crate) enum Form {
    Number(FactKey),
    /// 0 is off, any other value on.
    Flag(FactKey),
    Word(FactKey),
    List(FactKey),
    /// Whole numbers, each with its own key.
    Numbers(&'static [FactKey]),
}

impl Form {
    fn keys(&self) -> &[FactKey] {
        match self {
            Self::Number(key) | Self::Flag(key) | Self::Word(key) | Self::List(key) => std::slice::from_ref(key),
            Self::Numbers(keys) => keys,
        }
    }
}

/// A file below `/proc/sys/net` and its form.
pub(crate) type Setting = (&'static str, Form);

/// Reads all parameters of a table; a missing one becomes an absence.
pub(crate) fn read(context: &Context<'_>, sink: &mut Sink<'_>, table: &[Setting]) -> Result<(), Missing> {
    for (file, form) in table {
        let path = format!("/proc/sys/net/{file}");
        match context.host.read(&path) {
            Ok(text) => one(sink, &path, &text, *form),
            Err(why) => form.keys().iter().for_each(|key| sink.absent(*key, &why)),
        }
    }
    Ok(())
}

fn one(sink: &mut Sink<'_>, path: &str, text: &str, form: Form) {
    let number = |word: Option<&str>| -> Result<i64, Missing> { parse::number(path, 1, word.unwrap_or_default()) };
    let mut words = parse::words(text);
    match form {
        Form::Number(key) => sink.put(key, number(words.next()), path),
        Form::Flag(key) => sink.put(key, number(words.next()).map(|number| number != 0), path),
        Form::Word(key) => sink.fact(key, text.trim(), path),
        Form::List(key) => sink.fact(key, Value::List(words.map(str::to_owned).collect()), path),
        Form::Numbers(keys) => keys.iter().for_each(|key| sink.put(*key, number(words.next()), path)),
    }
}
