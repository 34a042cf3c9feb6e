//! No circles of imports: inside a crate, too, arrows between files point one way. Two files may know each other (a type and
//! its parser); three or more in a circle cannot be read, tested or moved one at a time.
//!
//! An arrow goes from a file to the file that *defines* what it uses: re-exports are followed. What is defined in a crate's root
//! (`lib.rs`, `main.rs`) belongs to nobody in particular and makes no arrow; neither does a re-export that its own file does not use.
//! Code under `cfg(test)` is not looked at.

use crate::tree::{crates, files, name, root, text};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Files in circles of three or more, by crate, with some room for files that are split. A ratchet: numbers go down, entries go
/// away, none is added.
const KNOWN: &[(&str, usize)] = &[];

/// The path of a module, from the root of its crate.
type Module = Vec<String>;

/// What a `use` declaration brings into a module.
struct Import {
    public: bool,
    /// The path as written, without a final `*`.
    path: Vec<String>,
    /// The name in this module; `*` for a glob.
    name: String,
}

/// One file of a crate.
struct File {
    imports: Vec<Import>,
    /// Paths in code, outside `use` declarations.
    paths: BTreeSet<Vec<String>>,
    /// Names of the items and modules that it defines, at any depth.
    items: BTreeSet<String>,
    /// Modules that it declares for tests only.
    test_modules: Vec<String>,
    /// It declares modules by a macro, which makes a table of them.
    is_table: bool,
}

/// The identifiers, `::` and single punctuation characters of a text, without comments, literals and lifetimes.
fn tokens(text: &str) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    let at = |index: usize| chars.get(index).copied().unwrap_or('\0');
    let word = |c: char| c.is_alphanumeric() || c == '_';
    let (mut found, mut i) = (Vec::new(), 0);
    while i < chars.len() {
        let start = i;
        match chars[i] {
            '/' if at(i + 1) == '/' => i += chars[i..].iter().take_while(|c| **c != '\n').count(),
            '"' => {
                i += 1;
                while i < chars.len() && chars[i] != '"' {
                    i += if chars[i] == '\\' { 2 } else { 1 };
                }
                i += 1;
            }
            '\'' if at(i + 1) == '\\' => i += 3 + chars[i + 3..].iter().take_while(|c| **c != '\'').count() + 1,
            '\'' if at(i + 2) == '\'' => i += 3,
            '\'' => i += 1 + chars[i + 1..].iter().take_while(|c| word(**c)).count(),
            'r' if at(i + 1) == '#' && (at(i + 2) == '#' || at(i + 2) == '"')
                || at(i + 1) == '"' && chars[i] == 'r' =>
            {
                let hashes = chars[i + 1..].iter().take_while(|c| **c == '#').count();
                i += hashes + 2;
                while i < chars.len() && !(chars[i] == '"' && (1..=hashes).all(|n| at(i + n) == '#')) {
                    i += 1;
                }
                i += hashes + 1;
            }
            c if word(c) => {
                i += chars[i..].iter().take_while(|c| word(**c)).count();
                found.push(chars[start..i].iter().collect());
            }
            ':' if at(i + 1) == ':' => {
                found.push("::".to_owned());
                i += 2;
            }
            c => {
                if !c.is_whitespace() {
                    found.push(c.to_string());
                }
                i += 1;
            }
        }
    }
    found
}

/// The index behind the item that begins at `i`: its semicolon or its closing brace.
fn end_of_item(tokens: &[String], mut i: usize) -> usize {
    let mut depth = 0_usize;
    while i < tokens.len() {
        match tokens[i].as_str() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" => depth = depth.saturating_sub(1),
            "}" if depth <= 1 => return i + 1,
            "}" => depth -= 1,
            ";" | "," if depth == 0 => return i + 1,
            _ => {}
        }
        i += 1;
    }
    i
}

/// The leaves of a use tree that begins at `i`, and the index behind it.
fn use_tree(tokens: &[String], mut i: usize, before: &[String], found: &mut Vec<(Vec<String>, String)>) -> usize {
    let mut path = before.to_vec();
    while let Some(token) = tokens.get(i) {
        match token.as_str() {
            "::" => i += 1,
            "{" => {
                i += 1;
                while tokens.get(i).is_some_and(|token| token != "}") {
                    i = use_tree(tokens, i, &path, found);
                    i += usize::from(tokens.get(i).is_some_and(|token| token == ","));
                }
                return i + 1;
            }
            "*" => {
                found.push((path, "*".to_owned()));
                return i + 1;
            }
            "as" => {
                found.push((path, tokens[i + 1].clone()));
                return i + 2;
            }
            ";" | "," | "}" => break,
            "self" if !path.is_empty() => i += 1,
            word => {
                path.push(word.to_owned());
                i += 1;
            }
        }
    }
    let last = path.last().cloned().unwrap_or_default();
    found.push((path, last));
    i
}

fn read(text: &str) -> File {
    const ITEMS: &[&str] = &["const", "enum", "fn", "macro_rules", "mod", "static", "struct", "trait", "type", "union"];
    let tokens = tokens(text);
    let token = |i: usize| tokens.get(i).map_or("", String::as_str);
    let mut file = File {
        imports: Vec::new(),
        paths: BTreeSet::new(),
        items: BTreeSet::new(),
        test_modules: Vec::new(),
        is_table: false,
    };
    let mut i = 0;
    while i < tokens.len() {
        if (0..7).map(|n| token(i + n)).eq(["#", "[", "cfg", "(", "test", ")", "]"]) {
            let end = end_of_item(&tokens, i + 7);
            let module = tokens[i..end].iter().position(|token| token == "mod");
            file.test_modules.extend(module.map(|at| tokens[i + at + 1].clone()));
            i = end;
        } else if token(i) == "use" && token(i + 1) != "<" {
            let mut leaves = Vec::new();
            let public = i > 0 && (token(i - 1) == "pub" || token(i - 1) == ")");
            i = use_tree(&tokens, i + 1, &[], &mut leaves);
            file.imports.extend(leaves.into_iter().map(|(path, name)| Import { public, path, name }));
        } else if ITEMS.contains(&token(i)) && token(i - usize::from(i > 0)) != "." {
            i += 1 + usize::from(token(i + 1) == "!") + usize::from(token(i + 1) == "mut");
            file.is_table |= token(i - 1) == "mod" && token(i) == "$";
            file.items.insert(token(i).to_owned());
            i += 1;
        } else if token(i).starts_with(|c: char| c.is_alphabetic() || c == '_') {
            let after_dot = i > 0 && token(i - 1) == ".";
            let mut path = vec![token(i).to_owned()];
            while token(i + 1) == "::" && token(i + 2).starts_with(|c: char| c.is_alphabetic() || c == '_') {
                path.push(token(i + 2).to_owned());
                i += 2;
            }
            if !after_dot {
                file.paths.insert(path);
            }
            i += 1;
        } else {
            i += 1;
        }
    }
    file
}

/// The files of a crate by the paths of their modules; the root has the empty path.
struct Crate(BTreeMap<Module, (String, File)>);

impl Crate {
    fn read(folder: &Path) -> Self {
        let mut modules = BTreeMap::new();
        for path in files(folder, ".rs") {
            let inside = path.strip_prefix(folder).unwrap_or(&path).with_extension("");
            let mut module: Module = inside.iter().filter_map(|part| part.to_str()).map(str::to_owned).collect();
            module.pop_if(|last| last == "mod" || last == "lib" || last == "main");
            modules.insert(module, (name(&path), read(&text(&path))));
        }
        let of_tests: Vec<Module> = modules
            .iter()
            .flat_map(|(module, (_, file))| {
                file.test_modules.iter().map(move |test| [module.as_slice(), std::slice::from_ref(test)].concat())
            })
            .collect();
        modules.retain(|module, _| !of_tests.iter().any(|test| module.starts_with(test)));
        Self(modules)
    }

    /// The module that defines what a path in a module names; nothing for another crate's or for a module itself.
    fn definer(&self, module: &[String], path: &[String], depth: usize) -> Option<Module> {
        let (first, rest) = path.split_first()?;
        let child = [module, std::slice::from_ref(first)].concat();
        if depth > 16 {
            return None;
        }
        match first.as_str() {
            "crate" => self.item(&[], rest, depth),
            "self" => self.item(module, rest, depth),
            "super" => self.item(module.split_last()?.1, rest, depth),
            _ if self.0.contains_key(&child) => self.item(&child, rest, depth),
            _ => {
                let import = self.0.get(module)?.1.imports.iter().find(|import| import.name == *first)?;
                // `use foo::foo` of another crate would lead to itself.
                (import.path.first()? != first).then_some(())?;
                self.definer(module, &[&import.path, rest].concat(), depth + 1)
            }
        }
    }

    /// The module that defines an item that another one names `path`.
    fn item(&self, module: &[String], path: &[String], depth: usize) -> Option<Module> {
        let (first, rest) = path.split_first()?;
        if first == "super" {
            return self.item(module.split_last()?.1, rest, depth);
        }
        let child = [module, std::slice::from_ref(first)].concat();
        let file = &self.0.get(module)?.1;
        if self.0.contains_key(&child) && !rest.is_empty() {
            return self.item(&child, rest, depth);
        }
        if file.imports.iter().any(|import| import.name == *first && import.path.first() != Some(first)) {
            return self.definer(module, path, depth + 1);
        }
        if file.items.contains(first) {
            // A module of that name alone makes no arrow.
            return (!self.0.contains_key(&child)).then(|| module.to_vec());
        }
        let globs = file.imports.iter().filter(|import| import.name == "*");
        globs
            .map(|glob| self.definer(module, &[glob.path.as_slice(), path].concat(), depth + 1))
            .find(Option::is_some)
            .flatten()
    }

    /// The modules that a module uses, without the root and itself.
    fn arrows(&self, module: &Module) -> BTreeSet<Module> {
        let file = &self.0[module].1;
        let private = file.imports.iter().filter(|import| !import.public && import.name != "*");
        let mut paths: Vec<Vec<String>> = private.map(|import| import.path.clone()).collect();
        paths.extend(file.paths.iter().cloned());
        let globs: Vec<&Import> = file.imports.iter().filter(|import| import.name == "*").collect();
        paths
            .extend(file.paths.iter().flat_map(|path| globs.iter().map(|glob| [&glob.path, path.as_slice()].concat())));
        let mut found: BTreeSet<Module> = paths.iter().filter_map(|path| self.definer(module, path, 0)).collect();
        if file.is_table {
            found.extend(
                self.0.keys().filter(|other| other.split_last().is_some_and(|(_, parent)| parent == module)).cloned(),
            );
        }
        found.retain(|other| !other.is_empty() && other != module);
        found
    }

    /// The circles of more than two files: for each file the files of the circle that it uses.
    fn circles(&self) -> Vec<Vec<String>> {
        let arrows: BTreeMap<&Module, BTreeSet<Module>> =
            self.0.keys().map(|module| (module, self.arrows(module))).collect();
        let reach: BTreeMap<&Module, BTreeSet<&Module>> = arrows
            .keys()
            .map(|from| {
                let (mut reached, mut next) = (BTreeSet::new(), vec![*from]);
                while let Some(module) = next.pop() {
                    next.extend(arrows[module].iter().filter(|other| reached.insert(*other)));
                }
                (*from, reached)
            })
            .collect();
        let circles: BTreeSet<BTreeSet<&Module>> = reach
            .iter()
            .map(|(module, reached)| reached.iter().copied().filter(|other| reach[other].contains(module)).collect())
            .collect();
        let described = |circle: BTreeSet<&Module>| {
            let name = |module: &Module| self.0[module].0.as_str();
            let used = |module: &Module| -> Vec<&str> {
                arrows[module].iter().filter(|other| circle.contains(other)).map(name).collect()
            };
            circle.iter().map(|module| format!("{} -> {}", name(module), used(module).join(" "))).collect()
        };
        circles.into_iter().filter(|circle| circle.len() > 2).map(described).collect()
    }
}

/// Each crate with its circles.
fn circles() -> Vec<(String, Vec<Vec<String>>)> {
    let sources = crates().into_iter().map(|folder| (root().join("crates").join(&folder), folder));
    let sources = sources.chain([(root().join("bench"), "bench".to_owned())]);
    sources.map(|(path, folder)| (folder, Crate::read(&path.join("src")).circles())).collect()
}

#[test]
fn no_circle_of_imports() {
    let mut wrong = Vec::new();
    for (folder, circles) in circles() {
        let count: usize = circles.iter().map(Vec::len).sum();
        let known = KNOWN.iter().find(|(known, _)| *known == folder).map(|(_, count)| *count);
        let listed: Vec<String> = circles.iter().map(|circle| format!("  {}", circle.join("\n  "))).collect();
        let listed = format!("{folder}: {count} files in circles\n{}", listed.join("\n  --\n"));
        match known {
            _ if count == 0 => {}
            Some(known) if count <= known => println!("{listed}"),
            _ => wrong.push(listed),
        }
    }
    assert!(
        wrong.is_empty(),
        "imports between files go one way: move what several files share into a file below them\n{}",
        wrong.join("\n")
    );
}

#[test]
fn paths_are_read_from_code_alone() {
    let file = read(
        "use crate::a::{self, b::C as D, *};\npub use super::e::F;\n// crate::no::No\nfn f<'a>(x: &'a str) -> g::H { x.i(\"j::K\") }\n\
         #[cfg(test)]\nmod tests {\n    use super::*;\n}\n#[cfg(test)]\nmod testing;\n",
    );
    let imports: Vec<_> =
        file.imports.iter().map(|import| (import.public, import.path.join("::"), import.name.as_str())).collect();
    assert_eq!(
        imports,
        [
            (false, "crate::a".to_owned(), "a"),
            (false, "crate::a::b::C".to_owned(), "D"),
            (false, "crate::a".to_owned(), "*"),
            (true, "super::e::F".to_owned(), "F"),
        ]
    );
    assert!(file.paths.contains(&vec!["g".to_owned(), "H".to_owned()]), "{:?}", file.paths);
    assert!(!file.paths.iter().any(|path| ["i", "j", "crate"].contains(&path[0].as_str())), "{:?}", file.paths);
    assert_eq!(file.test_modules, ["tests", "testing"]);
}

#[test]
fn a_circle_is_found_through_a_re_export() {
    let modules = [
        ("", "mod a;\npub use a::b::B;"),
        ("a", "pub mod b;\npub mod c;"),
        ("a::b", "use super::c::C;\npub struct B;"),
        ("a::c", "use crate::d;\npub fn c() { d::d() }\npub struct C;"),
        ("d", "use crate::B;\npub fn d() {}"),
        ("e", "use crate::d::d;"),
    ];
    let module = |path: &str| path.split("::").filter(|part| !part.is_empty()).map(str::to_owned).collect();
    let read = |(path, text): &(&str, &str)| (module(path), ((*path).to_owned(), read(text)));
    let circles = Crate(modules.iter().map(read).collect()).circles();
    assert_eq!(circles, [["a::b -> a::c", "a::c -> d", "d -> a::b"]]);
}

#[test]
fn a_module_with_parts_is_a_folder_with_a_mod_rs() {
    let sources = files(&root().join("crates"), ".rs").into_iter().chain(files(&root().join("bench"), ".rs"));
    let wrong: Vec<String> = sources.filter(|path| path.with_extension("").is_dir()).map(|path| name(&path)).collect();
    assert!(wrong.is_empty(), "move each into its folder as mod.rs:\n{}", wrong.join("\n"));
}
