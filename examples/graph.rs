//! What scans do to a graph: exclusive sums of how many edges each vertex has are where its edges begin in one array of all (compressed
//! sparse rows), and a stable sort turns all edges round. The graph is that of the packages in a `Cargo.lock` and what each depends on.
//! Over slices on the CPU device, each step compared with the loop that it stands for; the picture goes into the folder, if one is
//! named:
//!
//!     cargo run --release --example graph -- FOLDER [Cargo.lock]
//!
//! On a GPU the same definitions run by `Scanner::run` over cudarc's slices: the calls have the same names.

mod check;
mod picture;

use check::{Outcome, checked};
use lookback::element::{Definition, Operator};
use lookback::lab::host_scanner::HostScanner;
use lookback::run::AnyScanner;
use picture::{Drawing, arguments, keep};
use std::collections::HashMap;
use std::error::Error;
use std::path::Path;

/// Packages, and by their numbers what each depends on.
struct Packages {
    names: Vec<String>,
    needs: Vec<Vec<u32>>,
}

impl Packages {
    fn read(path: &Path) -> Result<Self, Box<dyn Error>> {
        let shown = path.display();
        let text = std::fs::read_to_string(path).map_err(|error| format!("{shown}: {error}"))?;
        let file: toml::Table =
            text.parse().map_err(|error: toml::de::Error| format!("{shown}: {}", error.message()))?;
        let packages = file.get("package").and_then(toml::Value::as_array);
        let packages = packages.filter(|packages| !packages.is_empty());
        let packages = packages.ok_or_else(|| format!("{shown} has no packages: name a Cargo.lock"))?;
        let name_of = |package: &toml::Value, key: &str| {
            let name = package.get(key).and_then(toml::Value::as_str).map(String::from);
            name.ok_or_else(|| format!("{shown}: a package has no {key}"))
        };
        // Cargo names a package by its version, too, where there are several of the name.
        let (mut names, mut numbers) = (Vec::new(), HashMap::new());
        for (package, number) in packages.iter().zip(0_u32..) {
            let (name, version) = (name_of(package, "name")?, name_of(package, "version")?);
            numbers.insert(format!("{name} {version}"), number);
            numbers.insert(name.clone(), number);
            names.push(name);
        }
        let number_of = |need: &toml::Value| {
            // What may follow the version is where it is from.
            let words: Vec<&str> = need.as_str().unwrap_or_default().split(' ').take(2).collect();
            let number = numbers.get(&words.join(" ")).copied();
            number.ok_or_else(|| format!("{shown}: {need} is needed, and is none of its packages"))
        };
        let needs_of = |package: &toml::Value| {
            let needs = package.get("dependencies").and_then(toml::Value::as_array);
            needs.into_iter().flatten().map(number_of).collect::<Result<Vec<u32>, _>>()
        };
        let needs = packages.iter().map(needs_of).collect::<Result<_, _>>()?;
        Ok(Self { names, needs })
    }
}

/// A graph in compressed sparse rows: those of vertex v are `edges[offsets[v]..offsets[v + 1]]`.
struct SparseRows {
    offsets: Vec<u32>,
    edges: Vec<u32>,
}

impl SparseRows {
    /// Of how many edges each vertex has, and of all these.
    fn of(scanner: &mut HostScanner, degrees: &[u32], edges: Vec<u32>) -> Result<Self, Box<dyn Error>> {
        let mut offsets = vec![0_u32; degrees.len() + 1];
        scanner.exclusive(Operator::Sum, degrees, &mut offsets)?;
        Ok(Self { offsets, edges })
    }

    /// The same edges, each the other way.
    fn turned(&self, scanner: &mut HostScanner) -> Result<Self, Box<dyn Error>> {
        let vertices = self.offsets.len() as u32 - 1;
        let from: Vec<u32> = (0..vertices).flat_map(|from| self.row(from).iter().map(move |_| from)).collect();
        let by_target = Definition::sort::<u32>()?.with::<u32>("from").define()?;
        let (mut targets, mut edges) = (vec![0_u32; from.len()], vec![0_u32; from.len()]);
        scanner.run(by_target).input(&self.edges).input(&from).output(&mut targets).output(&mut edges).sort()?;
        let degree =
            Definition::binned::<u32>("edges to a vertex", vertices, "return to;").input::<u32>("to").define()?;
        let mut degrees = vec![0_u32; vertices as usize];
        scanner.run(degree).input(&self.edges).output(&mut degrees).histogram()?;
        Self::of(scanner, &degrees, edges)
    }

    fn row(&self, vertex: u32) -> &[u32] {
        let vertex = vertex as usize;
        &self.edges[self.offsets[vertex] as usize..self.offsets[vertex + 1] as usize]
    }

    /// Whether each row is this one.
    fn is<'a>(&self, rows: impl Iterator<Item = &'a Vec<u32>>) -> bool {
        rows.zip(0..).all(|(row, vertex)| row == self.row(vertex))
    }

    /// The vertex of the longest row.
    fn busiest(&self) -> usize {
        let length = |&vertex: &usize| self.offsets[vertex + 1] - self.offsets[vertex];
        (0..self.offsets.len() - 1).max_by_key(length).unwrap_or(0)
    }
}

/// The matrix of what needs what, and beside it the offsets of its rows.
fn chart(names: &[String], needs: &SparseRows, needed: &SparseRows) -> Vec<u8> {
    let (packages, edges) = (names.len(), needs.edges.len());
    let title =
        format!("Each row of the matrix begins where all before it end: {packages} packages, {edges} dependencies");
    let (left, top, side, right, width) = (110.0, 72.0, 440.0, 580.0, 150.0);
    let mut drawing = Drawing::new(760, 560, &title);
    // Marks are larger than a place in the matrix, so that they are seen.
    let dot = side / packages as f64;
    let mark = dot.max(2.6);
    let dots = (0..packages as u32).flat_map(|from| needs.row(from).iter().map(move |&to| (from, to)));
    drawing.grid((left, top), (left + side, top));
    drawing.grid((left, top), (left, top + side));
    drawing.rectangles(dots.map(|(from, to)| [left + dot * f64::from(to), top + dot * f64::from(from), mark, mark]));
    drawing.text((left, top - 12.0), "start", "", "a row is a package, with a dot for each that it needs");

    let (most, busiest) = (needed.busiest(), needs.busiest());
    let y = top + dot * (busiest as f64 + 0.5);
    drawing.text((left - 6.0, y + 4.0), "end", "", &names[busiest]);
    let x = left + dot * (most as f64 + 0.5);
    drawing.text((x, top + side + 16.0), "middle", "", &names[most]);

    for (x, edges) in [(right, 0), (right + width, edges)] {
        drawing.grid((x, top), (x, top + side));
        drawing.text((x, top + side + 16.0), "middle", "", &edges.to_string());
    }
    let place = |edge: u32, row: usize| (right + width * f64::from(edge) / edges.max(1) as f64, top + dot * row as f64);
    let steps = needs.offsets.iter().enumerate();
    drawing.line(steps.flat_map(|(row, &offset)| [place(offset, row), place(offset, row + 1)]).take(2 * packages));
    drawing.text((right, top - 12.0), "start", "line-text", "where its edges begin");
    drawing.finish()
}

fn main() -> Outcome {
    let (folder, path) = arguments(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.lock"))?;
    let Packages { names, needs } = Packages::read(&path)?;
    let scanner = &mut HostScanner::default();

    let degrees: Vec<u32> = needs.iter().map(|needs| needs.len() as u32).collect();
    let graph = SparseRows::of(scanner, &degrees, needs.concat())?;
    let busiest = graph.busiest();
    let found = format!(
        "{} edges of {} packages, most of them from {}: {}",
        graph.edges.len(),
        names.len(),
        names[busiest],
        needs[busiest].len()
    );
    checked("what each package needs", graph.is(needs.iter()), &found)?;

    let turned = graph.turned(scanner)?;
    let mut needed = vec![Vec::new(); names.len()];
    for (needs, from) in needs.iter().zip(0_u32..) {
        needs.iter().for_each(|&to| needed[to as usize].push(from));
    }
    let busiest = turned.busiest();
    let found = format!("{} is needed by {}", names[busiest], needed[busiest].len());
    checked("what needs each package", turned.is(needed.iter()), &found)?;
    keep(folder.as_deref(), "graph-offsets.svg", &chart(&names, &graph, &turned))
}
