//! The scan of a team as the papers draw it: a line down for each value, a dot for each operator, a step below the other.

use crate::lab::report::chart::{begin_pen, text_at};
use crate::lab::report::error::ReportError;
use crate::lab::report::pen::Pen;
use crate::lab::report::svg::{Drawing, GRID, Plot, Refusal, drawing_with, title_of};
use crate::lab::trace::team::{Node, Row, TeamScan};
use plotters::prelude::*;
use std::fmt::Write;

const LEFT: i32 = 168;
const STEP: i32 = 34;
const TOP: i32 = 58;
const WIDTH: i32 = 900;

/// The picture of one.
pub(super) fn picture(scan: &TeamScan) -> Result<Plot, ReportError> {
    let TeamScan { pattern, threads, rows, .. } = scan;
    let (steps, operators) = (scan.steps(), scan.operators());
    let at_work = rows.iter().filter(|row| row.at_work() > 0).map(Row::at_work);
    let (fewest, most) = (at_work.clone().min().unwrap_or(0), at_work.max().unwrap_or(0));
    let at_work = if fewest == most { most.to_string() } else { format!("{fewest} to {most}") };
    let title =
        format!("{pattern}: {operators} operators in {steps} steps, with {at_work} of {threads} threads at work");
    let place = |index: u32| LEFT + (WIDTH - LEFT - 24) * index as i32 / (*threads as i32 - 1);
    let bottom = TOP + STEP * rows.len() as i32;
    let draw = || -> Result<Drawing, Refusal> {
        let svg = drawing_with((WIDTH as u32, (bottom + 24) as u32), &title, |root| {
            title_of(root, &title)?;
            for index in 0..*threads {
                let x = place(index);
                root.draw(&PathElement::new(vec![(x, TOP), (x, bottom + 6)], GRID.stroke_width(1)))?;
            }
            let mut elements = String::new();
            for (step, row) in rows.iter().enumerate() {
                text_at(&mut elements, (16, (TOP + STEP * step as i32 + STEP / 2) as u32), 12, &label(row));
            }
            for (is_combined, pen) in [(false, Pen::of_index(7)), (true, Pen::of_index(0))] {
                begin_pen(&mut elements, pen);
                for (step, row) in rows.iter().enumerate() {
                    let top = TOP + STEP * step as i32;
                    for node in row.nodes.iter().filter(|node| node.is_combined == is_combined) {
                        draw_node(&mut elements, node, top, place);
                    }
                }
                elements.push_str("</g>\n");
            }
            Ok(elements)
        })?;
        Ok(Drawing { wide: svg, narrow: None })
    };
    let moves = rows.iter().flat_map(|row| &row.nodes).any(|node| !node.is_combined);
    let grey = if moves { "; a grey one moves a value or sets the identity" } else { "" };
    let caption = format!("A line for each value, time goes down. A dot combines{grey}.");
    Plot::drawn(format!("inside-{pattern}"), title.clone(), caption, draw)
}

/// What stands before a row.
fn label(row: &Row) -> String {
    let turns = if row.most_turns > 1 { format!(", {} turns", row.most_turns) } else { String::new() };
    match row.at_work() {
        0 => "no operator".to_owned(),
        1 => format!("1 thread{turns}"),
        count => format!("{count} threads{turns}"),
    }
}

fn draw_node(svg: &mut String, node: &Node, top: i32, place: impl Fn(u32) -> i32) {
    let (to, bottom) = (place(node.to), top + STEP - 6);
    for from in node.from.iter().filter(|&&from| from != node.to) {
        let _ = writeln!(
            svg,
            "<path d=\"M{} {top}L{to} {bottom}\" fill=\"none\" stroke=\"currentColor\" stroke-width=\"1\"/>",
            place(*from)
        );
    }
    let _ = writeln!(
        svg,
        "<circle cx=\"{to}\" cy=\"{bottom}\" r=\"{}\"><title>thread {}</title></circle>",
        if node.is_combined { 4 } else { 3 },
        node.thread
    );
}
