//! The rooms of the crate, read from its sources: no import leads from a lower room to a higher one, and files import
//! each other in no circle, but for the state machine of the CPU executor.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use syn::visit::{self, Visit};

/// Rooms from the lowest to the highest; those of one line stand beside each other and do not know each other.
const FLOORS: &[&[&str]] = &[
    &["abi", "gpu", "names", "text"],
    &["element"],
    &["strategy"],
    &["kernels"],
    &["cpu", "cuda"],
    &["lab"],
    &["cli"],
    &["main"],
];

/// Rooms inside the laboratory, likewise; what is not named here stands between `verify` and `record`.
const FLOORS_OF_LAB: &[&[&str]] =
    &[&["dataset", "device", "verify"], &["record"], &["measure"], &["axiomatic"], &["stress"], &["report"]];

/// Files of the CPU executor that are one state machine: a coroutine's callbacks come back to the scheduler that runs it.
const STATE_MACHINE: &str = "cpu::";

/// A module's path without `crate`: `strategy::plan`.
type Module = String;

#[derive(Default)]
struct Imports {
    module: Module,
    /// Paths from the crate's root, and the names that modules re-export: name, path.
    paths: BTreeSet<Vec<String>>,
    exports: Vec<(String, Vec<String>)>,
}

impl Imports {
    fn absolute(&self, path: &[String]) -> Option<Vec<String>> {
        let mut base: Vec<String> =
            self.module.split("::").filter(|part| !part.is_empty()).map(str::to_owned).collect();
        let mut rest = path;
        match rest.first()?.as_str() {
            "crate" => (base, rest) = (Vec::new(), &rest[1..]),
            "self" => rest = &rest[1..],
            "super" => {}
            _ => return None,
        }
        while rest.first().is_some_and(|part| part == "super") {
            base.pop();
            rest = &rest[1..];
        }
        base.extend_from_slice(rest);
        Some(base)
    }

    fn tree(&mut self, tree: &syn::UseTree, before: &[String], is_public: bool) {
        let below = |name: &syn::Ident| [before, &[name.to_string()]].concat();
        match tree {
            syn::UseTree::Path(path) => self.tree(&path.tree, &below(&path.ident), is_public),
            syn::UseTree::Group(group) => group.items.iter().for_each(|item| self.tree(item, before, is_public)),
            syn::UseTree::Glob(_) => self.found(before.to_vec(), None),
            syn::UseTree::Name(name) => {
                let path = if name.ident == "self" { before.to_vec() } else { below(&name.ident) };
                self.found(path, is_public.then(|| name.ident.to_string()));
            }
            syn::UseTree::Rename(name) => self.found(below(&name.ident), is_public.then(|| name.rename.to_string())),
        }
    }

    fn found(&mut self, path: Vec<String>, exported_as: Option<String>) {
        // `pub use child::Name` in a module's own file.
        let in_child = [&["self".to_owned()], path.as_slice()].concat();
        let absolute = self.absolute(&path).or_else(|| exported_as.as_ref().and_then(|_| self.absolute(&in_child)));
        match (absolute, exported_as) {
            (Some(path), Some(name)) => self.exports.push((name, path)),
            (Some(path), None) => drop(self.paths.insert(path)),
            (None, _) => {}
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
        if names.len() > 1
            && let Some(path) = self.absolute(&names)
        {
            self.paths.insert(path);
        }
        visit::visit_path(self, path);
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
    let exports: BTreeMap<String, &Vec<String>> = read
        .iter()
        .flat_map(|imports| imports.exports.iter().map(|(name, path)| (format!("{}::{name}", imports.module), path)))
        .collect();
    // Where a name is defined: re-exports are followed, and what is left is cut down to the file.
    let home = |path: &[String]| {
        let mut path = path.to_vec();
        for _ in 0..8 {
            let exported = (1..=path.len()).find_map(|end| {
                exports.get(&path[..end].join("::")).map(|target| [target.as_slice(), &path[end..]].concat())
            });
            match exported {
                Some(target) if target != path => path = target,
                _ => break,
            }
        }
        (1..=path.len()).rev().map(|end| path[..end].join("::")).find(|module| modules.contains(module.as_str()))
    };
    let arrows = |imports: &Imports| {
        imports
            .paths
            .iter()
            .filter_map(|path| home(path))
            .filter(|to| *to != imports.module && !to.is_empty())
            .collect()
    };
    read.iter().map(|imports| (imports.module.clone(), arrows(imports))).collect()
}

fn floor(floors: &[&[&str]], room: &str) -> Option<usize> {
    floors.iter().position(|rooms| rooms.contains(&room))
}

fn room(module: &str) -> &str {
    module.split("::").next().expect("a first part")
}

#[test]
fn no_import_leads_from_a_lower_room_to_a_higher_one() {
    let mut wrong = Vec::new();
    for (from, targets) in imports() {
        for to in targets {
            let up = |floors, from: &str, to: &str| match (floor(floors, from), floor(floors, to)) {
                (Some(below), Some(above)) => above > below || above == below && from != to,
                _ => false,
            };
            let of_lab = |module: &'_ str| module.strip_prefix("lab::").map(|rest| room(rest).to_owned());
            let inside = matches!((of_lab(&from), of_lab(&to)), (Some(a), Some(b)) if up(FLOORS_OF_LAB, &a, &b)
                && floor(FLOORS_OF_LAB, &a) != floor(FLOORS_OF_LAB, &b));
            if !from.is_empty() && up(FLOORS, room(&from), room(&to)) || inside {
                wrong.push(format!("{from} imports {to}"));
            }
        }
    }
    assert!(wrong.is_empty(), "arrows that run up:\n{}", wrong.join("\n"));
}

#[test]
fn every_room_has_a_floor() {
    for module in imports().keys().filter(|module| !module.is_empty()) {
        assert!(floor(FLOORS, room(module)).is_some(), "{module}: give its room a floor in this test");
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
