"""Reports of ended jobs: `kinds` makes their tables, `studies` sets presets beside what was published."""
