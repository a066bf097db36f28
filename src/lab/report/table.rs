//! A table as data, and then as Markdown or HTML.

use super::html;

/// Columns and rows of text, with a sentence on what they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Table {
    pub(super) caption: String,
    pub(super) columns: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
    /// How many columns from the left are words; the others are figures.
    pub(super) words: usize,
}

impl Table {
    /// A table whose columns have fixed names.
    pub(super) fn new(caption: String, columns: &[&str], rows: Vec<Vec<String>>, words: usize) -> Self {
        Self { caption, columns: columns.iter().map(|column| (*column).to_owned()).collect(), rows, words }
    }

    /// As Markdown, the sentence first.
    pub(super) fn markdown(&self) -> String {
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let mut text = format!("{}\n\n{}", self.caption, line(&self.columns));
        for index in 0..self.columns.len() {
            text.push_str(if index < self.words { "|---" } else { "|---:" });
        }
        text.push_str("|\n");
        for row in &self.rows {
            let cells: Vec<String> = row.iter().map(|cell| cell.replace('|', "\\|")).collect();
            text.push_str(&line(&cells));
        }
        text
    }

    /// As HTML, without the sentence.
    pub(super) fn html(&self) -> String {
        let cells = |tag: &str, cells: &[String]| -> String {
            let class = |index: usize| if index < self.words { " class=\"word\"" } else { "" };
            cells.iter().enumerate().map(|(index, text)| html::cell(tag, class(index), text)).collect()
        };
        html::table(&cells("th", &self.columns), self.rows.iter().map(|row| cells("td", row)))
    }
}
