"""The chaos campaign: kills, full disks, many writers, and broken or hostile files.

``make chaos`` runs it for a few minutes, ``python tests/chaos/campaign.py --hours 2`` for longer.
Each trial must end as the same result, or as one clear line with nothing lost. Anything else is a
finding: it is kept as a folder with the files and the command that reproduce it.
"""
