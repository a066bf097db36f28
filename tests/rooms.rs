//! The rooms of the crate, read from its sources: no import leads from a room to one later in these tables, and files
//! import each other in no circle, but for the state machine of the CPU executor. It reads `use` and all paths, those in
//! macro calls too. It does not see methods and fields of what another module hands over, functions that a module calls
//! by a name that it exports with `pub use`, and files that are included.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use syn::visit::{self, Visit};

/// Rooms, each of which may import from earlier lines; those of one line do not know each other.
const ROOMS: &[&[&str]] = &[
    &["abi", "gpu", "names", "text"],
    &["element", "file", "ranks"],
    &["strategy"],
    &["run"],
    &["kernels", "out_of_core"],
    &["cpu", "cuda"],
    &["lab"],
    &["cli"],
    &["main"],
];

/// Rooms inside the laboratory, likewise, but those of one line may know each other. What is not named here has no
/// place: only circles are looked for.
const ROOMS_OF_LAB: &[&[&str]] = &[
    &["dataset", "device", "order", "trace", "verify", "workload"],
    &["record"],
    &["measure"],
    &["costs"],
    &["axiomatic"],
    &["stress"],
    &["lesson"],
    &["report"],
];

/// Files of the CPU executor that are one state machine: a coroutine's callbacks come back to the scheduler that runs it.
const STATE_MACHINE: &str = "cpu::";

/// A module's path without `crate`: `strategy::plan`.
type Module = String;

/// Paths by the paths of other names for them.
type Names = BTreeMap<String, Vec<String>>;

#[derive(Default)]
struct Imports {
    module: Module,
    /// Paths from the crate's root.
    paths: BTreeSet<Vec<String>>,
    /// What `use` gives a name, and what is exported under one.
    names: Names,
    exports: Names,
}

impl Imports {
    /// A path that begins with no keyword is one of the module's own names: an import, a child, or else something of
    /// the module or of another crate, which leads to the module itself.
    fn absolute(&self, path: &[String]) -> Vec<String> {
        let mut base: Vec<String> =
            self.module.split("::").filter(|part| !part.is_empty()).map(str::to_owned).collect();
        let mut rest = path;
        match path[0].as_str() {
            "crate" => (base, rest) = (Vec::new(), &path[1..]),
            "self" => rest = &path[1..],
            _ => {}
        }
        while rest.first().is_some_and(|part| part == "super") {
            base.pop();
            rest = &rest[1..];
        }
        base.extend_from_slice(rest);
        base
    }

    fn tree(&mut self, tree: &syn::UseTree, before: &[String], is_public: bool) {
        let below = |name: &syn::Ident| [before, &[name.to_string()]].concat();
        match tree {
            syn::UseTree::Path(path) => self.tree(&path.tree, &below(&path.ident), is_public),
            syn::UseTree::Group(group) => group.items.iter().for_each(|item| self.tree(item, before, is_public)),
            syn::UseTree::Glob(_) => drop(self.paths.insert(self.absolute(before))),
            syn::UseTree::Name(name) if name.ident == "self" => {
                self.found(before, before.last().expect("a name before it"), is_public);
            }
            syn::UseTree::Name(name) => self.found(&below(&name.ident), &name.ident.to_string(), is_public),
            syn::UseTree::Rename(name) => self.found(&below(&name.ident), &name.rename.to_string(), is_public),
        }
    }

    fn found(&mut self, path: &[String], name: &str, is_public: bool) {
        let (path, name) = (self.absolute(path), self.absolute(&[name.to_owned()]).join("::"));
        if is_public {
            self.exports.insert(name, path);
        } else {
            self.paths.insert(path.clone());
            self.names.insert(name, path);
        }
    }
}

fn is_test(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && matches!(&attribute.meta, syn::Meta::List(list) if list.tokens.to_string() == "test")
    })
}

impl<'ast> Visit<'ast> for Imports {
    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if !is_test(&item.attrs) {
            self.tree(&item.tree, &[], !matches!(item.vis, syn::Visibility::Inherited));
        }
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if is_test(&item.attrs) || item.content.is_none() {
            return;
        }
        let outer = self.module.clone();
        self.module = format!("{outer}::{}", item.ident);
        visit::visit_item_mod(self, item);
        self.module = outer;
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        // A single name is something that the module exports, or its own; in small letters it may be a variable too.
        if names.len() > 1 || names[0].starts_with(char::is_uppercase) {
            self.paths.insert(self.absolute(&names));
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        let tokens = call.tokens.to_string().replace(" :: ", "::");
        for path in tokens.split(|c: char| !c.is_alphanumeric() && c != '_' && c != ':') {
            let names: Vec<String> = path.split("::").map(str::to_owned).collect();
            if names.len() > 1 && names.iter().all(|name| !name.is_empty()) {
                self.paths.insert(self.absolute(&names));
            }
        }
        visit::visit_macro(self, call);
    }
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder of the package") {
        let path = entry.expect("it can be read").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

fn module_of(file: &Path, root: &Path) -> Module {
    let below = file.strip_prefix(root).expect("found below it").with_extension("");
    let mut parts: Vec<_> = below.iter().map(|part| part.to_str().expect("names are ASCII")).collect();
    if ["mod", "lib"].contains(parts.last().expect("a file")) {
        parts.pop();
    }
    parts.join("::")
}

/// From each module to those that it imports from.
fn imports() -> BTreeMap<Module, BTreeSet<Module>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&root, &mut files);
    let mut read = Vec::new();
    for file in &files {
        let text = std::fs::read_to_string(file).expect("it can be read");
        let mut imports = Imports { module: module_of(file, &root), ..Imports::default() };
        imports.visit_file(&syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display())));
        imports.module = module_of(file, &root);
        read.push(imports);
    }
    let modules: BTreeSet<&str> = read.iter().map(|imports| imports.module.as_str()).collect();
    let exports: Names = read.iter().flat_map(|imports| imports.exports.clone()).collect();
    let followed = |names: &Names, path: &[String]| {
        let known = (1..=path.len()).find_map(|end| Some((names.get(&path[..end].join("::"))?, end)));
        known.map(|(target, end)| [target.as_slice(), &path[end..]].concat())
    };
    // Where a name is defined: imports and re-exports are followed, and what is left is cut down to the file.
    let home = |imports: &Imports, path: &[String]| {
        let mut path = followed(&imports.names, path).unwrap_or_else(|| path.to_vec());
        for _ in 0..8 {
            match followed(&exports, &path) {
                Some(target) if target != path => path = target,
                _ => break,
            }
        }
        (1..=path.len()).rev().map(|end| path[..end].join("::")).find(|module| modules.contains(module.as_str()))
    };
    let arrows = |imports: &Imports| {
        let homes = imports.paths.iter().filter_map(|path| home(imports, path));
        homes.filter(|to| *to != imports.module && !to.is_empty()).collect()
    };
    read.iter().map(|imports| (imports.module.clone(), arrows(imports))).collect()
}

fn place(rooms: &[&[&str]], room: &str) -> Option<usize> {
    rooms.iter().position(|rooms| rooms.contains(&room))
}

fn room(module: &str) -> &str {
    module.split("::").next().expect("a first part")
}

#[test]
fn no_import_leads_to_a_room_later_in_the_table() {
    let mut wrong = Vec::new();
    for (from, targets) in imports() {
        for to in targets {
            let places = |rooms, from: &str, to: &str| place(rooms, room(from)).zip(place(rooms, room(to)));
            let outside = places(ROOMS, &from, &to);
            let between = outside.is_some_and(|(own, other)| other > own || other == own && room(&from) != room(&to));
            let of_lab = from.strip_prefix("lab::").zip(to.strip_prefix("lab::"));
            let inside = of_lab.and_then(|(from, to)| places(ROOMS_OF_LAB, from, to));
            if between || inside.is_some_and(|(own, other)| other > own) {
                wrong.push(format!("{from} imports {to}"));
            }
        }
    }
    assert!(wrong.is_empty(), "imports from rooms later in the table:\n{}", wrong.join("\n"));
}

#[test]
fn every_room_has_a_place_in_the_table() {
    for module in imports().keys().filter(|module| !module.is_empty()) {
        assert!(place(ROOMS, room(module)).is_some(), "{module}: give its room a place in the table of this test");
    }
}

#[test]
fn files_import_each_other_in_no_circle() {
    let arrows = imports();
    assert!(arrows.values().map(BTreeSet::len).sum::<usize>() > 100, "the imports were not read");
    // What can be reached from where; a module on a circle reaches itself.
    let reach = |start: &Module| {
        let (mut reached, mut open) = (BTreeSet::new(), vec![start]);
        while let Some(module) = open.pop() {
            for to in arrows.get(module).into_iter().flatten() {
                if !(start.starts_with(STATE_MACHINE) && to.starts_with(STATE_MACHINE)) && reached.insert(to) {
                    open.push(to);
                }
            }
        }
        reached
    };
    let reached: BTreeMap<&Module, BTreeSet<&Module>> = arrows.keys().map(|module| (module, reach(module))).collect();
    let is_on_circle = |module: &&Module| reached[*module].contains(*module);
    let circles: Vec<String> = arrows
        .keys()
        .filter(is_on_circle)
        .map(|module| {
            let next: Vec<_> = arrows[module].iter().filter(|to| reached[*to].contains(module)).collect();
            format!("{module} -> {next:?}")
        })
        .collect();
    assert!(circles.is_empty(), "on circles:\n{}", circles.join("\n"));
}

/// What `{:?}` writes is made for whoever reads the source: `InOrder`, `Random { preemption: 0.0 }`.
#[test]
fn no_text_for_users_is_made_by_debug() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&root, &mut files);
    assert!(files.len() > 100, "the sources were not read");
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let program = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
        let is_for_users =
            |line: &&str| !["assert", "panic!", "unreachable!", "//"].iter().any(|word| line.contains(word));
        for line in program.lines().filter(is_for_users) {
            assert!(!line.contains(":?}") && !line.contains(":#?}"), "{}: {line}", file.display());
        }
    }
}
