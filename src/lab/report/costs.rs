//! The tables of a cost account.

use super::table::Table;
use crate::lab::costs::{BY_DEFINITION, CONFIGURATION, Column, CostRecord, MEASURED};
use crate::text::or_dash;

/// A table a scan and size: what is defined and what was measured in one.
pub(super) fn tables(record: &CostRecord) -> Vec<Table> {
    let table = |costs| {
        let columns = CONFIGURATION.iter().chain(&BY_DEFINITION).chain(&MEASURED);
        let columns: Vec<&Column> = columns.filter(|column| column.is_of(&costs)).collect();
        let names: Vec<&str> = ["strategy"].into_iter().chain(columns.iter().map(|column| column.name)).collect();
        let cells = |row| columns.iter().map(move |column| or_dash((column.cell)(row)));
        let rows = costs.rows.iter().map(|(name, row)| [name.clone()].into_iter().chain(cells(row)).collect());
        let caption = format!("What a scan costs, {}: {}.", costs.title, origin(record));
        Table::new(caption, &names, rows.collect(), 1)
    };
    record.costs().into_iter().map(table).collect()
}

/// Where figures are from, at the end of a caption.
fn origin(record: &CostRecord) -> String {
    let header = &record.header;
    let day = header.date.split('T').next().unwrap_or_default();
    let commit = header.git_commit.as_deref().and_then(|commit| commit.get(..7));
    let commit = commit.map_or(String::new(), |commit| format!("commit {commit}, "));
    format!("{}, {day}, {commit}`{}`", header.device.name, header.command)
}
