"""What is on the dashboards: the questions in `queries`, how they are drawn in `panels`, one module per dashboard."""
