//! The tree is the architecture: its imports point one way, and this holds
//! them to it.
//!
//! Files are read as tokens and not as lines, so that comments, docs and
//! strings are not taken for imports, and what stands in a macro is not
//! overlooked. Unit tests may import what they like.

use std::{collections::BTreeSet, fs, path::Path};

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

/// The modules of the crate's root. A group imports what stands above it.
#[rustfmt::skip]
const GROUPS: [Row; 7] = [
    Row::of("vocabulary", &["time", "error", "cost", "verdict", "scope_key", "call_options", "outcome"]),
    Row::of("pure", &["hint", "trust", "law", "retry_policy"]),
    Row::of("shared state", &["scope", "observe"]),
    Row::of("judging", &["classifier", "body"]),
    Row::of(
        "services",
        &["resolve", "retry", "gate", "rate", "classify"],
    )
    .strangers(),
    Row::of("composition", &["retry_after"]),
    Row::of("integrations", &["reqwest", "axum", "redis"]).strangers(),
];

/// Lines that a file may have besides blank ones and unit tests: not much over
/// 400.
const MOST_LINES: usize = 450;

struct Row {
    name: &'static str,
    modules: &'static [&'static str],
    /// Its modules do not import each other.
    strangers: bool,
}

impl Row {
    const fn of(name: &'static str, modules: &'static [&'static str]) -> Self {
        Self {
            name,
            modules,
            strangers: false,
        }
    }

    const fn strangers(mut self) -> Self {
        self.strangers = true;
        self
    }
}

#[test]
fn every_file_belongs_to_a_group() {
    for Source { name, module, .. } in sources() {
        assert!(
            module.is_empty() || group_of(&module).is_some(),
            "{name}: no group has a module `{module}`"
        );
    }
}

#[test]
fn imports_point_up_the_tree_and_never_sideways_among_services() {
    let wrong: Vec<String> = sources().iter().flat_map(wrong_imports).collect();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn the_front_door_holds_no_logic() {
    let front_door = sources().into_iter().find(|file| file.module.is_empty());
    let words = front_door.unwrap().facts.words;
    for logic in ["fn", "impl", "macro_rules"] {
        assert!(!words.contains(logic), "src/lib.rs has a `{logic}`");
    }
}

#[test]
fn every_file_is_short() {
    let is_long = |file: &Source| file.facts.lines > MOST_LINES;
    let tell = |file: Source| format!("{}: {} lines", file.name, file.facts.lines);
    let long: Vec<String> = sources().into_iter().filter(is_long).map(tell).collect();
    assert!(long.is_empty(), "\n{}", long.join("\n"));
}

fn wrong_imports(file: &Source) -> Vec<String> {
    // The front door re-exports whatever it likes.
    let Some(own) = group_of(&file.module) else {
        return Vec::new();
    };
    let judge = |(line, path): &(usize, String)| {
        let complaint = match group_of(path) {
            _ if *path == file.module => return None,
            Some(group) if group < own => return None,
            Some(group) if group == own && !GROUPS[own].strangers => return None,
            Some(group) if group == own => "is its neighbour".to_owned(),
            Some(group) => format!("stands below it, in {}", GROUPS[group].name),
            None => "is no module: name the one that defines what is imported".to_owned(),
        };
        Some(format!("{}:{line}: `{path}` {complaint}", file.name))
    };
    file.facts.imports.iter().filter_map(judge).collect()
}

fn group_of(module: &str) -> Option<usize> {
    let is_in = |row: &Row| row.modules.contains(&module);
    GROUPS.iter().position(is_in)
}

// ===== the files =====

struct Source {
    name: String,
    /// The module of the crate's root that it belongs to; empty for `lib.rs`.
    module: String,
    /// Its own path of modules.
    path: Vec<String>,
    facts: Facts,
}

/// All files in `src` but those of unit tests.
fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(source(&root, &path));
            }
        }
    }
    let below =
        |file: &Source, name: &String| [&file.path[..], std::slice::from_ref(name)].concat();
    let tests: Vec<Vec<String>> = files
        .iter()
        .flat_map(|file| file.facts.test_modules.iter().map(|name| below(file, name)))
        .collect();
    files.retain(|file| !tests.iter().any(|test| file.path.starts_with(test)));
    files
}

fn source(root: &Path, file: &Path) -> Source {
    let name = file.strip_prefix(root).unwrap();
    let modules = name.with_extension("");
    let modules = modules.iter().map(|module| module.to_str().unwrap());
    let path: Vec<String> = modules
        .filter(|module| !["lib", "mod"].contains(module))
        .map(str::to_owned)
        .collect();
    Source {
        name: format!("src/{}", name.display()),
        module: path.first().cloned().unwrap_or_default(),
        facts: Facts::read(&fs::read_to_string(file).unwrap(), path.len()),
        path,
    }
}

// ===== what is in a file =====

/// What is in a file, unit tests left out.
#[derive(Default)]
struct Facts {
    /// Line and module of each path that begins with `crate`, or that leaves
    /// the module of the crate's root by `super`.
    imports: Vec<(usize, String)>,
    /// All identifiers and keywords.
    words: BTreeSet<String>,
    /// Modules declared for unit tests only.
    test_modules: Vec<String>,
    /// Lines that are not blank.
    lines: usize,
}

impl Facts {
    /// Reads `text`, a file `depth` modules below the crate's root.
    fn read(text: &str, depth: usize) -> Self {
        let mut facts = Self {
            lines: blank_free(text.lines()),
            ..Self::default()
        };
        facts.walk(text.parse().unwrap(), text, depth);
        facts
    }

    fn walk(&mut self, tokens: TokenStream, text: &str, depth: usize) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut i = 0;
        while i < tokens.len() {
            match &tokens[i..] {
                [
                    TokenTree::Punct(hash),
                    TokenTree::Group(attribute),
                    rest @ ..,
                ] if hash.as_char() == '#' && is_test_only(attribute) => {
                    let item = 2 + end_of_item(rest);
                    self.skip(&tokens[i..i + item], text);
                    i += item;
                    continue;
                }
                [TokenTree::Ident(word), rest @ ..] => {
                    self.words.insert(word.to_string());
                    let line = word.span().start().line;
                    if word == "crate" {
                        self.imports
                            .extend(roots(rest).into_iter().map(|root| (line, root)));
                    } else if word == "super" && climb(rest) >= depth {
                        self.imports.push((line, "super".to_owned()));
                    }
                }
                [TokenTree::Group(group), ..] => self.walk(group.stream(), text, depth),
                _ => {}
            }
            i += 1;
        }
    }

    /// Leaves out `item`, which is compiled for unit tests only.
    fn skip(&mut self, item: &[TokenTree], text: &str) {
        let first = item[0].span().start().line;
        let last = item[item.len() - 1].span().end().line;
        self.lines -= blank_free(text.lines().skip(first - 1).take(last + 1 - first));
        let words = item.iter().filter_map(|token| match token {
            TokenTree::Ident(word) => Some(word.to_string()),
            _ => None,
        });
        self.test_modules
            .extend(words.skip_while(|word| word != "mod").nth(1));
    }
}

fn blank_free<'a>(lines: impl Iterator<Item = &'a str>) -> usize {
    lines.filter(|line| !line.trim().is_empty()).count()
}

/// Whether `attribute` is `[cfg(test)]` or `[cfg(all(test, …))]`.
fn is_test_only(attribute: &Group) -> bool {
    let text = attribute.stream().to_string().replace(' ', "");
    text == "cfg(test)" || text.starts_with("cfg(all(test,")
}

/// How many of `tokens` belong to the item that begins them.
fn end_of_item(tokens: &[TokenTree]) -> usize {
    let ends = |token: &TokenTree| match token {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        TokenTree::Punct(punct) => [';', ','].contains(&punct.as_char()),
        _ => false,
    };
    tokens
        .iter()
        .position(ends)
        .map_or(tokens.len(), |end| end + 1)
}

/// The modules that a path names after its `crate`: one, or those in braces.
fn roots(after: &[TokenTree]) -> Vec<String> {
    // `pub(crate)` is no path.
    let Some(root) = in_path(after) else {
        return Vec::new();
    };
    let TokenTree::Group(braces) = root else {
        return vec![root.to_string()];
    };
    let tokens: Vec<TokenTree> = braces.stream().into_iter().collect();
    let is_comma = |token: &TokenTree| token.to_string() == ",";
    let first = |path: &[TokenTree]| Some(path.first()?.to_string());
    tokens.split(is_comma).filter_map(first).collect()
}

/// How many modules a path climbs that begins with `super`.
fn climb(after: &[TokenTree]) -> usize {
    match in_path(after) {
        Some(next) if next.to_string() == "super" => 1 + climb(&after[3..]),
        Some(_) => 1,
        None => 0,
    }
}

/// What follows the `::` that begins `after`.
fn in_path(after: &[TokenTree]) -> Option<&TokenTree> {
    match after {
        [TokenTree::Punct(a), TokenTree::Punct(b), next, ..] => {
            (a.as_char() == ':' && b.as_char() == ':').then_some(next)
        }
        _ => None,
    }
}

#[test]
fn a_reader_sees_every_import_and_no_other() {
    let text = r#"
        //! Not [`crate::axum`].
        use crate::{gate::{self, Gate}, rate::Rate, Front};
        use crate::scope;

        /// Nor `use crate::axum`.
        pub(crate) fn f() -> &'static str { crate::law::g("crate::axum"); super::x() }
        pin_project! { struct S { inner: crate::hint::H, pub(super) near: super::super::Y } }

        #[cfg(test)]
        use crate::axum;
        #[cfg(test)]
        mod script;
        #[cfg(all(test, retry_after_loom))]
        mod tests {

            use crate::axum;
        }
        #[cfg(not(test))]
        use crate::body::Body;
    "#;
    let facts = Facts::read(text, 2);
    let imports: Vec<&str> = facts.imports.iter().map(|(_, path)| &**path).collect();
    let expected = [
        "gate", "rate", "Front", "scope", "law", "hint", "super", "body",
    ];
    assert_eq!(imports, expected);
    assert_eq!(facts.imports[4].0, 7);
    assert_eq!(facts.test_modules, ["script", "tests"]);
    assert_eq!(facts.lines, 8);
}
