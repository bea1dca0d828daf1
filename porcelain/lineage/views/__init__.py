"""What is shown: graphs, timelines, inventories and reports, as text, Markdown, HTML, Mermaid and DOT."""
