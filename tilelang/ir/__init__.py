"""TVM's TIRX made tame: the only package of the compiler that knows TVM."""
