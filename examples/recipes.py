"""The paper's running example: which recipes do people search for? Run it with `python examples/recipes.py`."""

import plume
from plume.synthetic import recipe_searches


def main() -> None:
    """Release how often, and by how many people, each recipe was searched for."""
    searches = recipe_searches(20_000, seed=1)
    query = plume.Query(
        user="user_id",
        keys="recipe",
        measures=[plume.count(max_per_key=3, name="searches"), plume.users(name="people")],
        max_keys_per_user=6,
        budget=plume.Budget(epsilon=1.1, delta=1e-6),
    )
    release = plume.run(query, searches)
    print(release)
    # The searches are made up, so their exact number of spellings may be shown.
    print(f"{len(searches['recipe'].unique())} spellings were typed, {len(release)} are released.")


if __name__ == "__main__":
    main()
