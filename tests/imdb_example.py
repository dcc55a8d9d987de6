"""A file in the layout of IMDB-MULTI's text file, for the tests."""

# Two triangles and a path: graph 0 (label 0), graph 1 (label 2), graph 2 (label 1).
TEXT = """3
3 0
0 2 1 2
0 2 0 2
0 2 0 1
3 2
0 2 2 1
0 2 0 2
0 2 1 0
4 1
0 1 1
0 2 0 2
0 1 1
0 0
"""
